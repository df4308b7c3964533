/** The text of a kubeconfig: one cluster, one user, one context. */
import type { KeyAndCertificate } from './certificates.ts';

/** The name of cluster and context in the files that a server writes. */
export const CONTEXT_NAME = 'megaplane';

/** How a client reaches the server and who it is there. */
export interface KubeconfigFacts {
  readonly server: string;
  /** PEM of the authority that signed the server's certificate. */
  readonly authority: string;
  readonly user: string;
  readonly credential: KeyAndCertificate;
}

/** YAML that every Kubernetes client reads; certificates are inside. */
export function kubeconfigText(facts: KubeconfigFacts): string {
  const data = (pem: string): string => Buffer.from(pem).toString('base64');
  return `apiVersion: v1
kind: Config
clusters:
- name: ${CONTEXT_NAME}
  cluster:
    server: ${facts.server}
    certificate-authority-data: ${data(facts.authority)}
users:
- name: ${facts.user}
  user:
    client-certificate-data: ${data(facts.credential.certificate)}
    client-key-data: ${data(facts.credential.key)}
contexts:
- name: ${CONTEXT_NAME}
  context:
    cluster: ${CONTEXT_NAME}
    user: ${facts.user}
current-context: ${CONTEXT_NAME}
`;
}
