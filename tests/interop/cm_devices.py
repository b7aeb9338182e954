# SPDX-License-Identifier: Apache-2.0
# Which NIC librdmacm finds for an address of this host, bound to and on the way to itself.
#   cm_devices.py ADDRESS=DEVICE...
import ctypes
import socket
import struct
import sys

cm = ctypes.CDLL("librdmacm.so.1", use_errno=True)
verbs = ctypes.CDLL("libibverbs.so.1")
cm.rdma_create_event_channel.restype = ctypes.c_void_p
verbs.ibv_get_device_name.restype = ctypes.c_char_p
verbs.ibv_get_device_name.argtypes = [ctypes.c_void_p]
TCP = 0x0106  # RDMA_PS_TCP


def require(holds, what):
    if not holds:
        sys.exit(f"failed: {what} (errno {ctypes.get_errno()})")


def socket_address(text):
    if ":" in text:
        return struct.pack("=HHI16sI", socket.AF_INET6, 0, 0, socket.inet_pton(socket.AF_INET6, text), 0)
    return struct.pack("=HH4s8x", socket.AF_INET, 0, socket.inet_aton(text))


# The first member of an rdma_cm_id is its ibv_context, and the first of that is the ibv_device.
def device_of(cm_id):
    context = ctypes.cast(cm_id, ctypes.POINTER(ctypes.c_void_p))[0]
    require(context, "the identifier has a device")
    return verbs.ibv_get_device_name(ctypes.cast(context, ctypes.POINTER(ctypes.c_void_p))[0]).decode()


def new_id():
    channel = ctypes.c_void_p(cm.rdma_create_event_channel())
    require(channel, "an event channel")
    cm_id = ctypes.c_void_p()
    require(cm.rdma_create_id(channel, ctypes.byref(cm_id), None, TCP) == 0, "an identifier")
    return channel, cm_id


for wanted in sys.argv[1:]:
    address, device = wanted.split("=")
    raw = socket_address(address)
    _, bound = new_id()
    require(cm.rdma_bind_addr(bound, raw) == 0, f"{address} is bound")
    channel, resolved = new_id()
    require(cm.rdma_resolve_addr(resolved, None, raw, 5000) == 0, f"{address} is asked for")
    event = ctypes.c_void_p()
    require(cm.rdma_get_cm_event(channel, ctypes.byref(event)) == 0, "an event")
    require(cm.rdma_ack_cm_event(event) == 0, "the event is acknowledged")
    for found in (device_of(bound), device_of(resolved)):
        require(found == device, f"{address} is {device}'s, and not {found}'s")
    print(address, device)
require(len(sys.argv) > 1, "there are addresses to look for")
