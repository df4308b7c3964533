/** Which requests each of Kubernetes' own signers signs, and what it says of those it does not. */
import type { CertificateRequest } from '@megaplane/machinery/certificate-request';
import type { SigningPurpose } from '../framework/options.ts';

export const KUBELET_SERVING = 'kubernetes.io/kubelet-serving';
export const KUBELET_CLIENT = 'kubernetes.io/kube-apiserver-client-kubelet';
const CLIENT = 'kubernetes.io/kube-apiserver-client';
const LEGACY = 'kubernetes.io/legacy-unknown';

const NODES_GROUP = 'system:nodes';
const NODE_PREFIX = 'system:node:';
const ENCIPHER = 'key encipherment';
const SIGN = 'digital signature';

/** Signers that this program is, by what the flags of their keys are called. */
export const SIGNERS: Readonly<Record<Exclude<SigningPurpose, 'all'>, string>> = {
  'kubelet-serving': KUBELET_SERVING,
  'kubelet-client': KUBELET_CLIENT,
  'kube-apiserver-client': CLIENT,
  'legacy-unknown': LEGACY,
};

/** Why a signer does not sign a request; '' where it does. The texts are upstream's. */
export function objection(
  signer: string,
  request: CertificateRequest,
  usages: readonly string[],
): string {
  switch (signer) {
    case KUBELET_SERVING:
      return servingObjection(request, usages);
    case KUBELET_CLIENT:
      return clientObjection(request, usages);
    case CLIENT:
      return usageObjection(usages);
    default:
      return '';
  }
}

function isOfNodes({ organizations }: CertificateRequest): boolean {
  return organizations.length === 1 && organizations[0] === NODES_GROUP;
}

function servingObjection(request: CertificateRequest, usages: readonly string[]): string {
  if (!isOfNodes(request)) return 'subject organization is not system:nodes';
  if (request.dnsNames.length + request.addresses === 0) {
    return 'DNS or IP subjectAltName is required';
  }
  if (request.emails > 0) return 'Email subjectAltNames are not allowed';
  if (request.uris > 0) return 'URI subjectAltNames are not allowed';
  if (!areUsages(usages, 'server auth')) return mismatch('server auth');
  if (request.commonName.startsWith(NODE_PREFIX)) return '';
  return 'subject common name does not begin with system:node:';
}

/** Also tells what a kubelet asks for as a client: '' for that. */
export function clientObjection(request: CertificateRequest, usages: readonly string[]): string {
  if (!isOfNodes(request)) return 'subject organization is not system:nodes';
  if (request.dnsNames.length > 0) return 'DNS subjectAltNames are not allowed';
  if (request.emails > 0) return 'Email subjectAltNames are not allowed';
  if (request.addresses > 0) return 'IP subjectAltNames are not allowed';
  if (request.uris > 0) return 'URI subjectAltNames are not allowed';
  if (!request.commonName.startsWith(NODE_PREFIX)) {
    return 'subject common name does not begin with system:node:';
  }
  return areUsages(usages, 'client auth') ? '' : mismatch('client auth');
}

/** Keys that are not RSA cannot encipher, so that usage may be left out. */
function areUsages(usages: readonly string[], purpose: string): boolean {
  const given = new Set(usages);
  const rest = [...given].filter((one) => one !== ENCIPHER);
  return rest.length === 2 && given.has(SIGN) && given.has(purpose);
}

function mismatch(purpose: string): string {
  return `usages did not match [${[SIGN, ENCIPHER, purpose].toSorted().join(' ')}]`;
}

function usageObjection(usages: readonly string[]): string {
  const other = usages.find((one) => ![SIGN, ENCIPHER, 'client auth'].includes(one));
  if (other !== undefined) return `invalid usage for client certificate: ${other}`;
  if (usages.includes('client auth')) return '';
  return 'missing required usage for client certificate: client auth';
}
