# dculab_report_page(OUTPUT)  makes the page that `--report` fills, as a C++ string: report/page.html with its style,
# its scripts and D3 (Debian's node-d3) in place.
find_file(D3_SCRIPT d3.min.js PATHS /usr/share/nodejs/d3/dist NO_DEFAULT_PATH
  DOC "D3 5, minified: Debian's package node-d3")
if(NOT D3_SCRIPT)
  message(FATAL_ERROR "d3.min.js is missing: scripts/install-packages installs node-d3, or give -DD3_SCRIPT=FILE")
endif()
# D3's licence, and those of its parts that have another one.
file(GLOB D3_LICENCES /usr/share/doc/node-d3/copyright /usr/share/doc/node-d3-array/copyright
  /usr/share/doc/node-d3-geo/copyright /usr/share/doc/node-d3-scale-chromatic/copyright
  /usr/share/doc/node-d3-voronoi/copyright)

function(dculab_report_page output)
  # In this order: the charts use what is before them, main.js draws them all.
  set(scripts format.js facts.js colors.js axes.js marks.js svg_export.js section.js
    charts/roofline.js charts/time_by_bound.js charts/hit_rates.js charts/heat_map.js charts/throughput_latency.js
    charts/pareto.js charts/predicted_measured.js charts/kv_use.js charts/decisions.js charts/assumptions.js tables.js main.js)
  list(TRANSFORM scripts PREPEND ${PROJECT_SOURCE_DIR}/report/)
  set(page ${PROJECT_SOURCE_DIR}/report/page.html)
  set(style ${PROJECT_SOURCE_DIR}/report/report.css)
  set(make_page ${PROJECT_SOURCE_DIR}/cmake/make_report_page.cmake)
  add_custom_command(
    OUTPUT ${output}
    COMMAND ${CMAKE_COMMAND} -DPAGE=${page} -DSTYLE=${style} "-DSCRIPTS=${scripts}" -DD3=${D3_SCRIPT}
            "-DLICENCES=${D3_LICENCES}" -DOUTPUT=${output} -P ${make_page}
    DEPENDS ${page} ${style} ${scripts} ${D3_SCRIPT} ${D3_LICENCES} ${make_page}
    COMMENT "Page of --report"
    VERBATIM)
endfunction()
