/**
 * What a cluster has to hold so that machines may join it, by `megaplane node join` or by kubeadm:
 * who it is (signed, for anybody), how its kubelets are configured, and what bootstrap tokens are
 * good for. Names, groups and roles are those of kubeadm 1.36.
 */
import type { JsonObject } from '@megaplane/machinery/json-value';
import type { Token } from './token.ts';

/** Whoever comes with a token of ours is in it. */
export const JOIN_GROUP = 'system:bootstrappers:kubeadm:default-node-token';
export const CLUSTER_INFO = { namespace: 'kube-public', name: 'cluster-info' } as const;
export const KUBELET_CONFIG = { namespace: 'kube-system', name: 'kubelet-config' } as const;

export interface JoinFacts {
  /** `https://host:port` as machines reach it. */
  readonly server: string;
  /** PEM. */
  readonly authority: string;
  readonly kubernetesVersion: string;
  readonly clusterDomain: string;
  readonly services: string;
  readonly clusterDns: readonly string[];
}

/** An object, and the path that it is made at. */
export interface Wanted {
  readonly path: string;
  readonly object: JsonObject;
}

/** All objects but the token, each to be made, or made so where it is there already. */
export function joinObjects(facts: JoinFacts): readonly Wanted[] {
  const nodes = 'system:nodes';
  const roles = 'system:certificates.k8s.io:certificatesigningrequests:';
  return [
    configMap('kube-public', 'cluster-info', { kubeconfig: clusterInfo(facts) }),
    configMap('kube-system', 'kubeadm-config', {
      ClusterConfiguration: clusterConfiguration(facts),
    }),
    configMap('kube-system', 'kubelet-config', { kubelet: kubeletConfiguration(facts) }),
    role('kube-public', 'kubeadm:bootstrap-signer-clusterinfo', 'cluster-info'),
    binding('kube-public', 'kubeadm:bootstrap-signer-clusterinfo', [user('system:anonymous')]),
    role('kube-system', 'kubeadm:nodes-kubeadm-config', 'kubeadm-config'),
    binding('kube-system', 'kubeadm:nodes-kubeadm-config', [group(JOIN_GROUP), group(nodes)]),
    role('kube-system', 'kubeadm:kubelet-config', 'kubelet-config'),
    binding('kube-system', 'kubeadm:kubelet-config', [group(nodes), group(JOIN_GROUP)]),
    {
      path: `${RBAC}/clusterroles`,
      object: {
        apiVersion: RBAC_VERSION,
        kind: 'ClusterRole',
        metadata: { name: 'kubeadm:get-nodes' },
        rules: [{ apiGroups: [''], resources: ['nodes'], verbs: ['get'] }],
      },
    },
    clusterBinding('kubeadm:get-nodes', 'kubeadm:get-nodes', JOIN_GROUP),
    clusterBinding('kubeadm:kubelet-bootstrap', 'system:node-bootstrapper', JOIN_GROUP),
    clusterBinding('kubeadm:node-autoapprove-bootstrap', `${roles}nodeclient`, JOIN_GROUP),
    clusterBinding(
      'kubeadm:node-autoapprove-certificate-rotation',
      `${roles}selfnodeclient`,
      nodes,
    ),
  ];
}

/** The Secret of a token; `expiration` is RFC 3339, or '' for one that never ends. */
export function tokenSecret(
  { id, secret }: Token,
  expiration: string,
  description: string,
): Wanted {
  const stringData: Record<string, string> = {
    'token-id': id,
    'token-secret': secret,
    'usage-bootstrap-authentication': 'true',
    'usage-bootstrap-signing': 'true',
    'auth-extra-groups': JOIN_GROUP,
    description,
    ...(expiration === '' ? {} : { expiration }),
  };
  return {
    path: '/api/v1/namespaces/kube-system/secrets',
    object: {
      apiVersion: 'v1',
      kind: 'Secret',
      type: 'bootstrap.kubernetes.io/token',
      metadata: { name: `bootstrap-token-${id}`, namespace: 'kube-system' },
      stringData,
    },
  };
}

const RBAC = '/apis/rbac.authorization.k8s.io/v1';
const RBAC_VERSION = 'rbac.authorization.k8s.io/v1';
const RBAC_GROUP = 'rbac.authorization.k8s.io';

function configMap(namespace: string, name: string, data: JsonObject): Wanted {
  return {
    path: `/api/v1/namespaces/${namespace}/configmaps`,
    object: { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, namespace }, data },
  };
}

function role(namespace: string, name: string, configMapName: string): Wanted {
  const rule = { apiGroups: [''], resources: ['configmaps'], resourceNames: [configMapName] };
  return {
    path: `${RBAC}/namespaces/${namespace}/roles`,
    object: {
      apiVersion: RBAC_VERSION,
      kind: 'Role',
      metadata: { name, namespace },
      rules: [{ ...rule, verbs: ['get'] }],
    },
  };
}

function user(name: string): JsonObject {
  return { apiGroup: RBAC_GROUP, kind: 'User', name };
}

function group(name: string): JsonObject {
  return { apiGroup: RBAC_GROUP, kind: 'Group', name };
}

function binding(namespace: string, name: string, subjects: JsonObject[]): Wanted {
  return {
    path: `${RBAC}/namespaces/${namespace}/rolebindings`,
    object: {
      apiVersion: RBAC_VERSION,
      kind: 'RoleBinding',
      metadata: { name, namespace },
      roleRef: { apiGroup: RBAC_GROUP, kind: 'Role', name },
      subjects,
    },
  };
}

function clusterBinding(name: string, of: string, groupName: string): Wanted {
  return {
    path: `${RBAC}/clusterrolebindings`,
    object: {
      apiVersion: RBAC_VERSION,
      kind: 'ClusterRoleBinding',
      metadata: { name },
      roleRef: { apiGroup: RBAC_GROUP, kind: 'ClusterRole', name: of },
      subjects: [group(groupName)],
    },
  };
}

/** A kubeconfig without a user, as kubeadm reads it: one cluster, without a name. */
export function clusterInfo({ server, authority }: JoinFacts): string {
  const data = Buffer.from(authority).toString('base64');
  return `apiVersion: v1
clusters:
- cluster:
    certificate-authority-data: ${data}
    server: ${server}
  name: ""
contexts: null
current-context: ""
kind: Config
users: null
`;
}

function clusterConfiguration(facts: JoinFacts): string {
  const { server, kubernetesVersion, clusterDomain, services } = facts;
  return `apiVersion: kubeadm.k8s.io/v1beta4
kind: ClusterConfiguration
clusterName: megaplane
controlPlaneEndpoint: ${JSON.stringify(server.replace('https://', ''))}
certificatesDir: /etc/kubernetes/pki
imageRepository: registry.k8s.io
kubernetesVersion: ${kubernetesVersion}
networking:
  dnsDomain: ${clusterDomain}
  serviceSubnet: ${services}
`;
}

/** Kubelets renew both certificates, and ask the cluster for the one that they serve by. */
export function kubeletConfiguration({ clusterDomain, clusterDns }: JoinFacts): string {
  return `apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
authentication:
  anonymous: { enabled: false }
  webhook: { enabled: true }
  x509: { clientCAFile: /etc/kubernetes/pki/ca.crt }
authorization: { mode: Webhook }
cgroupDriver: systemd
clusterDNS: [${clusterDns.map((one) => JSON.stringify(one)).join(', ')}]
clusterDomain: ${clusterDomain}
rotateCertificates: true
serverTLSBootstrap: true
staticPodPath: /etc/kubernetes/manifests
`;
}
