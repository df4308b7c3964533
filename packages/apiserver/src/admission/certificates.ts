/** Certificate requests: who may approve and sign for whom, and what clients may not ask for. */
import { equals, objectAt, stringAt } from '@megaplane/machinery/json';
import type { AdmissionPlugin, Admitted } from './admission.ts';
import { refuse } from './refusal.ts';

const REQUESTS = 'certificatesigningrequests.certificates.k8s.io';
const MASTERS = 'system:masters';

/** Whether the user has the verb on the signer, or on all signers of its domain. */
function mayUse({ world, call }: Admitted, signer: string, verb: string): boolean {
  const domain = `${signer.slice(0, signer.indexOf('/'))}/*`;
  return [signer, domain].some((name) => {
    const decision = world.services?.authorize(call.identity, {
      verb,
      isResource: true,
      path: '',
      group: 'certificates.k8s.io',
      version: '*',
      resource: 'signers',
      subresource: '',
      namespace: '',
      name,
    });
    return decision?.allowed === true;
  });
}

function isRequest(name: string, subresource: string, wanted: string): boolean {
  return name === REQUESTS && subresource === wanted;
}

export const certificateApproval: AdmissionPlugin = {
  name: 'CertificateApproval',
  handles: ({ resource }, operation, subresource) =>
    operation === 'UPDATE' && isRequest(resource.storage.name, subresource, 'approval'),
  validate: (write) => {
    const signer = stringAt(write.object ?? {}, 'spec', 'signerName');
    if (mayUse(write, signer, 'approve')) return null;
    const text = `user not permitted to approve requests with signerName ${JSON.stringify(signer)}`;
    return refuse(write, text);
  },
};

export const certificateSigning: AdmissionPlugin = {
  name: 'CertificateSigning',
  handles: ({ resource }, operation, subresource) =>
    operation === 'UPDATE' && isRequest(resource.storage.name, subresource, 'status'),
  validate: (write) => {
    const { object, previous } = write;
    const before = objectAt(previous ?? {}, 'status') ?? {};
    const next = objectAt(object ?? {}, 'status') ?? {};
    const isSame =
      equals(before['certificate'], next['certificate']) &&
      equals(before['conditions'], next['conditions']);
    if (isSame) return null;
    const signer = stringAt(previous ?? {}, 'spec', 'signerName');
    if (mayUse(write, signer, 'sign')) return null;
    const text = `user not permitted to sign requests with signerName ${JSON.stringify(signer)}`;
    return refuse(write, text);
  },
};

export const certificateSubjectRestriction: AdmissionPlugin = {
  name: 'CertificateSubjectRestriction',
  handles: ({ resource }, operation, subresource) =>
    operation === 'CREATE' && isRequest(resource.storage.name, subresource, ''),
  validate: (write) => {
    const spec = objectAt(write.object ?? {}, 'spec') ?? {};
    if (stringAt(spec, 'signerName') !== 'kubernetes.io/kube-apiserver-client') return null;
    if (!organizationsOf(stringAt(spec, 'request')).includes(MASTERS)) return null;
    return refuse(
      write,
      'use of kubernetes.io/kube-apiserver-client signer with system:masters group is not allowed',
    );
  },
};

/** The identifier of `organizationName` (2.5.4.10) in DER; its text follows as one string. */
const ORGANIZATION = Buffer.from([0x06, 0x03, 0x55, 0x04, 0x0a]);

/** Organizations that a request (PEM in base64) names; what is longer than 127 bytes is none. */
function organizationsOf(request: string): string[] {
  const pem = Buffer.from(request, 'base64').toString('latin1');
  const body = /-----BEGIN [^-]+-----([^-]*)-----END/.exec(pem)?.[1] ?? '';
  const der = Buffer.from(body.replaceAll(/\s/g, ''), 'base64');
  const found: string[] = [];
  for (let at = der.indexOf(ORGANIZATION); at >= 0; at = der.indexOf(ORGANIZATION, at + 1)) {
    const start = at + ORGANIZATION.length + 2;
    const length = der[start - 1] ?? 0;
    if (length < 128) found.push(der.toString('utf8', start, start + length));
  }
  return found;
}
