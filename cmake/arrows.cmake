# SPDX-License-Identifier: Apache-2.0
# Which way things point: for each module, the modules it may link. What it links it may include; what it does not, it
# cannot. An arrow that is not here makes the test house.arrows fail, so a new one is a line that somebody reads.

function(strait_arrows module)
  set_property(GLOBAL PROPERTY STRAIT_ARROWS_${module} ${ARGN})
endfunction()

strait_arrows(base        result plugin)
strait_arrows(sys         base result)
strait_arrows(buffer      sys base result plugin)
strait_arrows(export      buffer sys base result plugin)
strait_arrows(keys        export buffer sys base result plugin)
strait_arrows(plan        base result)  # pure: sees capability records, asks nobody
strait_arrows(rendezvous  keys sys base result)
strait_arrows(rail        device wire sys base result plugin)
strait_arrows(rail_proxy  wire sys base result plugin)  # mlx5 rings read by the CPU: a decoder of its own
strait_arrows(rail_cxi    rail_proxy device wire sys base result plugin)
strait_arrows(rail_verbs  rail_proxy wire sys base result plugin)  # a plug-in, like the software NIC
strait_arrows(post        plan keys export buffer rail device wire sys base result plugin)
strait_arrows(grant       sys base result)
strait_arrows(node        grant post rendezvous plan keys export buffer rail rail_cxi device wire sys base result plugin api)
# The far side shares formats and system calls with the library, never its code.
strait_arrows(soft_kernel soft_accel soft_driver sys base result plugin)
strait_arrows(soft_accel  soft_driver wire sys base result plugin)
# Vendors' libraries in software: in front of soft/accel; soft/kernel they reach through libstrait-soft.so only.
strait_arrows(soft_cuda   soft_accel soft_driver soft_host sys base result)
strait_arrows(soft_hsa    soft_accel soft_driver soft_host sys base result)
strait_arrows(soft_gaudi  soft_accel soft_driver soft_host sys base result)
strait_arrows(soft_roce   wire sys base result)
strait_arrows(soft_nic    soft_kernel soft_roce wire sys base result plugin)
strait_arrows(soft_cm     soft_host soft_uverbs soft_nic soft_roce wire sys base result)
strait_arrows(soft_host   sys base result)
strait_arrows(soft_cassini wire sys base result)
strait_arrows(soft_cassini_host soft_cassini soft_host soft_kernel soft_driver wire sys base result plugin)
strait_arrows(soft_uverbs soft_host soft_kernel soft_nic soft_roce wire sys base result plugin)
# Measuring beside others, for the tool and bench/: knows programs, not the library.
strait_arrows(plot        base)
strait_arrows(versus      plot sys base result)

# strait_wrong_arrows(out): sentences about links that the table does not allow, and modules it does not know.
function(strait_wrong_arrows out)
  set(wrong "")
  set(everybody flags fmt)
  get_property(modules GLOBAL PROPERTY STRAIT_MODULES)
  foreach(path ${modules})
    string(REPLACE "/" "_" module ${path})
    get_property(known GLOBAL PROPERTY STRAIT_ARROWS_${module} SET)
    if(NOT known)
      list(APPEND wrong "src/${path}: cmake/arrows.cmake does not say what it may link")
      continue()
    endif()
    get_property(allowed GLOBAL PROPERTY STRAIT_ARROWS_${module})
    get_target_property(links strait_${module} LINK_LIBRARIES)
    foreach(link ${links})
      if(link MATCHES "^strait_(.+)$" AND NOT CMAKE_MATCH_1 IN_LIST allowed AND NOT CMAKE_MATCH_1 IN_LIST everybody)
        list(APPEND wrong "src/${path} links ${link}, which points the wrong way")
      endif()
    endforeach()
  endforeach()
  set(${out} ${wrong} PARENT_SCOPE)
endfunction()
