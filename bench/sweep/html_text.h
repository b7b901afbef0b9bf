#pragma once

#include <string>
#include <string_view>

namespace anyslot::bench {

/// The text as it stands in an element or in a quoted attribute.
std::string escaped_html(std::string_view text);

/// JSON as it stands in a <script> element: nothing in it ends the element.
std::string escaped_script(std::string_view json);

}  // namespace anyslot::bench
