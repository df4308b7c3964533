/** Where a conversion webhook is reached: a URL or a service, and whom it has to be signed by. */
import { X509Certificate } from 'node:crypto';
import { invalidValue, required } from '../fielderrors.ts';
import { objectAt, stringAt } from '../json.ts';
import type { JsonObject } from '../json-value.ts';
import { dnsSubdomainErrors, portNumberErrors } from '../names.ts';
import { checkWebhookUrl } from '../validation-admission.ts';
import type { Findings } from '../validation-rules.ts';

export function checkWebhookClient(
  found: Findings,
  client: JsonObject,
  path: string,
  mayHaveBadBundle: boolean,
): void {
  const url = client['url'];
  const service = objectAt(client, 'service');
  if ((url === undefined) === (service === undefined)) {
    found.push(required(path, 'exactly one of url or service is required'));
  } else if (typeof url === 'string') checkWebhookUrl(found, `${path}.url`, url);
  else if (service !== undefined) checkService(found, service, `${path}.service`);
  const bundle = stringAt(client, 'caBundle');
  if (bundle === '' || mayHaveBadBundle) return;
  const fault = bundleFault(bundle);
  if (fault !== '') found.push(invalidValue(`${path}.caBundle`, bundle, fault));
}

/** Upstream looks for the name where the namespace is, and the other way round. */
function checkService(found: Findings, service: JsonObject, path: string): void {
  if (stringAt(service, 'namespace') === '') found.push(required(`${path}.name`));
  if (stringAt(service, 'name') === '') found.push(required(`${path}.namespace`));
  const port = service['port'];
  const number = typeof port === 'number' ? port : 0;
  const errors = portNumberErrors(number);
  if (errors.length > 0) {
    found.push(invalidValue(`${path}.port`, number, `port is not valid: ${errors.join(', ')}`));
  }
  const steps = stringAt(service, 'path');
  if (steps !== '' && steps !== '/') checkSteps(found, steps, `${path}.path`);
}

function checkSteps(found: Findings, path: string, at: string): void {
  const refuse = (text: string): void => void found.push(invalidValue(at, path, text));
  if (path === '//') {
    refuse('segment[0] may not be empty');
    return;
  }
  if (!path.startsWith('/')) refuse("must start with a '/'");
  for (const [i, step] of path.slice(1).replace(/\/$/, '').split('/').entries()) {
    if (step === '') refuse(`segment[${i}] may not be empty`);
    else for (const text of dnsSubdomainErrors(step)) refuse(`segment[${i}]: ${text}`);
  }
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
