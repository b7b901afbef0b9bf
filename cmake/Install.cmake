# cmake --install BUILD --prefix P: the program, the library, the headers, the package config, the bundled model.
include(CMakePackageConfigHelpers)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/AnySlot)

if(TARGET anyslot_cli)
  install(TARGETS anyslot_cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()
install(TARGETS anyslot EXPORT AnySlotTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY include/anyslot DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})

install(EXPORT AnySlotTargets NAMESPACE AnySlot:: DESTINATION ${package_dir})
configure_package_config_file(cmake/AnySlotConfig.cmake.in AnySlotConfig.cmake
                              INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(AnySlotConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/AnySlotConfig.cmake ${PROJECT_BINARY_DIR}/AnySlotConfigVersion.cmake
        DESTINATION ${package_dir})

install(DIRECTORY models/rag-demo-14m DESTINATION ${CMAKE_INSTALL_DATADIR}/anyslot/models)
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
