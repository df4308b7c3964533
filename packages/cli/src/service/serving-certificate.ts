// shell: a key and a clock
/** A certificate that nobody has signed, as kubelets make one for themselves. */
import { randomBytes } from 'node:crypto';
import { hostname } from 'node:os';
import { issueCertificate, type KeyAndCertificate } from '@megaplane/apiserver/certificates';

const DAY_MS = 86_400_000;

/** For this machine, and for `more` names and addresses. */
export function makeServingCertificate(more: readonly string[]): KeyAndCertificate {
  const nowMs = Date.now();
  const times = { notBeforeMs: nowMs - DAY_MS, notAfterMs: nowMs + 365 * DAY_MS };
  const about = { commonName: 'megaplane-nodes-ca', ...times };
  const authority = issueCertificate({ ...about, use: 'authority', serial: randomBytes(16) }, null);
  const names = ['localhost', '127.0.0.1', '::1', hostname(), ...more];
  return issueCertificate(
    {
      ...about,
      commonName: `${hostname()}@${nowMs}`,
      use: 'server',
      names: [...new Set(names)],
      serial: randomBytes(16),
    },
    authority,
  );
}
