// The form in which a document is written or changed.
import { fromTemplate } from "./dom.mjs";

/**
 * Puts the form into `place`, with the texts of `document` when it is one that exists. `done` is called once, with the new
 * {title, text}, or with null when the user gave up.
 */
export function openEditor(place, document, done) {
  const form = fromTemplate("editor-template");
  const { title, text } = form.elements;
  title.value = document?.title ?? "";
  text.value = document?.text ?? "";
  const finish = (result) => {
    form.remove();
    done(result);
  };
  const submit = () => form.requestSubmit();
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    finish({ title: title.value.trim(), text: text.value });
  });
  form.querySelector(".cancel").addEventListener("click", () => finish(null));
  form.addEventListener("keydown", (event) => {
    if (event.key === "Escape") finish(null);
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) submit();
  });
  place.append(form);
  (document ? text : title).focus();
}
