/** Where a conversion webhook is reached: a URL or a service, and whom it has to be signed by. */
import { X509Certificate } from 'node:crypto';
import { invalidValue } from '../meta/fielderrors.ts';
import { stringAt } from '../json/json.ts';
import type { JsonObject } from '../json/json-value.ts';
import { checkWebhookReach } from '../validation/field/validation-webhook-clients.ts';
import type { Findings } from '../validation/field/validation-rules.ts';

export function checkWebhookClient(
  found: Findings,
  client: JsonObject,
  path: string,
  mayHaveBadBundle: boolean,
): void {
  checkWebhookReach(found, path, client);
  const bundle = stringAt(client, 'caBundle');
  if (bundle === '' || mayHaveBadBundle) return;
  const fault = bundleFault(bundle);
  if (fault !== '') found.push(invalidValue(`${path}.caBundle`, bundle, fault));
}

const PEM = /-----BEGIN CERTIFICATE-----\s[A-Za-z0-9+/=\s]+-----END CERTIFICATE-----/g;
const UNREADABLE = 'unable to load root certificates: unable to parse bytes as PEM block';

/** What is wrong with certificates in PEM, in base64; '' for nothing. */
export function bundleFault(bundle: string): string {
  const blocks = Buffer.from(bundle, 'base64').toString('latin1').match(PEM) ?? [];
  return blocks.some((block) => isCertificate(block)) ? '' : UNREADABLE;
}

function isCertificate(block: string): boolean {
  try {
    return new X509Certificate(block).raw.length > 0;
  } catch {
    // it says no more than that it cannot be read
    return false;
  }
}
