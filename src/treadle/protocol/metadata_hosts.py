"""Where clouds tell a machine about itself, keys included: the one table of it, for judging and for connecting."""

import ipaddress

_words = str.split

METADATA_NAMES = frozenset(
    _words("""
    metadata metadata.google.internal metadata.goog instance-data instance-data.ec2.internal metadata.azure.internal
    metadata.azure.com metadata.tencentyun.com metadata.platformequinix.com metadata.packet.net metadata.exoscale.com
    api.metadata.cloud.ibm.com rancher-metadata rancher-metadata.rancher.internal
""")
)
METADATA_ADDRESSES = frozenset(
    map(
        ipaddress.ip_address,
        _words("""
    100.100.100.200 100.96.0.96 168.63.129.16 192.0.0.192
    fd00:ec2::23 fd00:ec2::123 fd00:ec2::253 fd00:ec2::254 fd20:ce::254 fd00:c1::a9fe:a9fe fd00:42::42
    fd00:a9fe:a9fe::1
"""),
    )
)
"""Where clouds answer besides 169.254.0.0/16 and fe80::/10; as far as is known, and not checked with each of them.

In order: Alibaba, Volcengine, Azure (WireServer), Oracle; Amazon (four), Google, Oracle, Scaleway, Akamai.
"""
