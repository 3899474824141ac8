"""NetworkPolicies become nftables rules on the real node; a cluster test checks their effect."""

from __future__ import annotations

from typing import Any

import pytest

from hack.kubernetes.policies import matches, ruleset

SPACES = [{"metadata": {"name": name, "labels": {"name": name}}} for name in ("here", "there")]


def pod(
    name: str,
    *addresses: str,
    namespace: str = "here",
    ports: dict[str, int] | None = None,
    **more: Any,
) -> Any:
    """Labelled with its name."""
    container = {
        "ports": [{"name": key, "containerPort": number} for key, number in (ports or {}).items()]
    }
    return {
        "metadata": {"name": name, "namespace": namespace, "labels": {"is": name}},
        "spec": {"containers": [container], **more},
        "status": {"podIPs": [{"ip": address} for address in addresses]},
    }


def policy(whom: str, **spec: Any) -> Any:
    return {
        "metadata": {"namespace": "here"},
        "spec": {"podSelector": {"matchLabels": {"is": whom}}, **spec},
    }


def named(name: str) -> Any:
    return {"matchLabels": {"is": name}}


def chain(text: str, name: str) -> list[str]:
    """The lines of a chain without the last one, which refuses."""
    lines = [
        line.strip()
        for line in text.split(f"chain {name} {{\n")[1].split("}")[0].splitlines()
        if line.strip()
    ]
    if name != "forward":
        assert lines.pop().startswith("reject")
    return lines


A, B, C = (
    pod("a", "10.0.0.1", "fd::1", ports={"http": 80}),
    pod("b", "10.0.0.2"),
    pod("b", "10.0.0.3", namespace="there"),
)


@pytest.mark.parametrize(
    ("rule", "lines"),
    [
        ({}, ["return"]),
        ({"ports": [{"port": 1}]}, ["tcp dport 1 return"]),
        ({"ports": [{"port": 1, "endPort": 9, "protocol": "UDP"}]}, ["udp dport 1-9 return"]),
        ({"ports": [{"protocol": "SCTP"}]}, ["meta l4proto sctp return"]),
        (
            {"ports": [{"port": "http"}]},
            ["ip daddr 10.0.0.1 tcp dport 80 return", "ip6 daddr fd::1 tcp dport 80 return"],
        ),
        ({"ports": [{"port": "other"}]}, []),
        ({"from": [{"podSelector": named("b")}]}, ["ip saddr 10.0.0.2 return"]),
        (
            {"from": [{"namespaceSelector": {}}, {"podSelector": named("x")}]},
            [
                "ip saddr 10.0.0.1 return",
                "ip6 saddr fd::1 return",
                "ip saddr 10.0.0.2 return",
                "ip saddr 10.0.0.3 return",
            ],
        ),
        (
            {
                "from": [
                    {
                        "namespaceSelector": {"matchLabels": {"name": "there"}},
                        "podSelector": named("b"),
                    }
                ]
            },
            ["ip saddr 10.0.0.3 return"],
        ),
        (
            {
                "from": [{"ipBlock": {"cidr": "10.1.0.0/16", "except": ["10.1.2.0/24"]}}],
                "ports": [{"port": 1}],
            },
            ["ip saddr 10.1.0.0/16 ip saddr != 10.1.2.0/24 tcp dport 1 return"],
        ),
    ],
)
def test_a_policy_admits_the_ports_and_peers_of_its_rules(
    rule: dict[str, Any], lines: list[str]
) -> None:
    text = ruleset([policy("a", ingress=[rule])], SPACES, [A, B, C])
    assert chain(text, "enter_0") == lines
    # of every family, and of nobody else
    jumps = ["ip daddr 10.0.0.1 jump enter_0", "ip6 daddr fd::1 jump enter_0"]
    assert chain(text, "forward") == [
        "type filter hook forward priority 0; policy accept;",
        "ct state established,related accept",
        *jumps,
    ]


def test_policies_add_up_and_each_direction_is_its_own() -> None:
    both = policy(
        "a", policyTypes=["Ingress", "Egress"], egress=[{"to": [{"podSelector": named("b")}]}]
    )
    more = policy("a", ingress=[{"ports": [{"port": 7}]}])
    text = ruleset([both, more], SPACES, [A, B, C])
    assert chain(text, "leave_0") == ["ip daddr 10.0.0.2 return"]
    assert chain(text, "enter_0") == ["tcp dport 7 return"]


def test_pods_that_ended_or_use_the_nodes_network_have_no_rules() -> None:
    ended, host = pod("a", "10.0.0.1"), pod("a", "10.0.0.9", hostNetwork=True)
    ended["status"]["phase"] = "Succeeded"
    assert "jump" not in ruleset([policy("a")], SPACES, [ended, host, B])


@pytest.mark.parametrize(
    ("operator", "values", "taken"),
    [
        ("In", ["x", "y"], True),
        ("In", ["y"], False),
        ("NotIn", ["y"], True),
        ("NotIn", ["x"], False),
        ("Exists", None, True),
        ("DoesNotExist", None, False),
    ],
)
def test_label_selectors_match_pods(operator: str, values: list[str] | None, taken: bool) -> None:
    assert (
        matches(
            {"matchExpressions": [{"key": "k", "operator": operator, "values": values}]}, {"k": "x"}
        )
        is taken
    )
    assert matches({}, {}) is True
