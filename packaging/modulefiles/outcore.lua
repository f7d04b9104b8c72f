-- Lmod: a virtual environment with Outcore as a module. Set prefix to the environment.
local prefix = os.getenv("OUTCORE_PREFIX") or "/opt/outcore"
local package = capture("sh -c 'echo " .. prefix .. "/lib/python3.*/site-packages/outcore'"):gsub("%s+$", "")

help([[Outcore: arrays and files larger than memory, for quantum chemistry. outcore --help lists the commands.]])
whatis("Name: outcore")
whatis("Description: Arrays and files larger than memory, for quantum chemistry")

prepend_path("PATH", pathJoin(prefix, "bin"))
prepend_path("CMAKE_PREFIX_PATH", package)
prepend_path("PKG_CONFIG_PATH", pathJoin(package, "lib/pkgconfig"))
