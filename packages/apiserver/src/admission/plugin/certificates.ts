/** Certificate requests: who may approve and sign for whom, and what clients may not ask for. */
import { readRequest } from '@megaplane/machinery/certificate-request';
import { equals, listAt, objectAt, stringAt } from '@megaplane/machinery/json';
import { CONTROLLERS_GROUP, NODES_GROUP } from '../../authorization/component-grants.ts';
import { MASTERS_GROUP } from '../../request/identity.ts';
import { refuse } from '../../registry/rest/refusal.ts';
import type { AdmissionPlugin } from '../admission-plugin.ts';
import { withDecisions, type Decide } from '../with-decisions.ts';

const REQUESTS = 'certificatesigningrequests.certificates.k8s.io';
const CLIENT_SIGNER = 'kubernetes.io/kube-apiserver-client';
/** Groups that no role names: a certificate that nobody can take back must not give them. */
const RESERVED_GROUPS = [MASTERS_GROUP, CONTROLLERS_GROUP, NODES_GROUP] as const;

/** Whether the user has the verb on the signer, or on all signers of its domain. */
function mayUse(decide: Decide, signer: string, verb: string): boolean {
  const domain = `${signer.slice(0, signer.indexOf('/'))}/*`;
  return [signer, domain].some((name) => {
    const decision = decide({
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
    return decision.allowed;
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
    const text = `user not permitted to approve requests with signerName ${JSON.stringify(signer)}`;
    return withDecisions(write, (decide) =>
      mayUse(decide, signer, 'approve') ? null : refuse(write, text),
    );
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
      equals([...listAt(before, 'conditions')], [...listAt(next, 'conditions')]);
    if (isSame) return null;
    const signer = stringAt(previous ?? {}, 'spec', 'signerName');
    const text = `user not permitted to sign requests with signerName ${JSON.stringify(signer)}`;
    return withDecisions(write, (decide) =>
      mayUse(decide, signer, 'sign') ? null : refuse(write, text),
    );
  },
};

export const certificateSubjectRestriction: AdmissionPlugin = {
  name: 'CertificateSubjectRestriction',
  handles: ({ resource }, operation, subresource) =>
    operation === 'CREATE' && isRequest(resource.storage.name, subresource, ''),
  validate: (write) => {
    const spec = objectAt(write.object ?? {}, 'spec') ?? {};
    if (stringAt(spec, 'signerName') !== CLIENT_SIGNER) return null;
    const request = readRequest(
      Buffer.from(stringAt(spec, 'request'), 'base64').toString('latin1'),
    );
    if (typeof request === 'string') return refuse(write, `failed to parse CSR: ${request}`);
    const group = RESERVED_GROUPS.find((one) => request.organizations.includes(one));
    if (group === undefined) return null;
    return refuse(write, `use of ${CLIENT_SIGNER} signer with ${group} group is not allowed`);
  },
};
