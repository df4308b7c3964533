"""Lists the config maps of the default namespace: how many, and how much they hold.

    lists.py httpx|kubernetes SERVER CA CERTIFICATE KEY
"""
import json
import ssl
import sys

way, server, ca, certificate, key = sys.argv[1:]
PATH = "/api/v1/namespaces/default/configmaps"


def with_httpx():
    import httpx

    context = ssl.create_default_context(cafile=ca)
    context.load_cert_chain(certificate, key)
    with httpx.Client(verify=context, trust_env=False, timeout=60) as client:
        answer = client.get(server + PATH)
    answer.raise_for_status()
    assert answer.headers["content-encoding"] == "gzip", answer.headers
    return [item.get("data") or {} for item in json.loads(answer.text)["items"]]


def with_kubernetes():
    from kubernetes import client

    settings = client.Configuration()
    settings.host, settings.ssl_ca_cert = server, ca
    settings.cert_file, settings.key_file = certificate, key
    api = client.ApiClient(settings)
    api.set_default_header("Accept-Encoding", "gzip")
    listed, _, headers = client.CoreV1Api(api).list_namespaced_config_map_with_http_info("default")
    assert headers["content-encoding"] == "gzip", headers
    return [item.data or {} for item in listed.items]


found = with_httpx() if way == "httpx" else with_kubernetes()
print(len(found), sum(len(value) for data in found for value in data.values()))
