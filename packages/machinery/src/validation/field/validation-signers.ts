/** Names of signers of certificates, and of the bundles that they publish. */
import { invalidValue, required, tooLong } from '../../meta/fielderrors.ts';
import { dnsLabelErrors, dnsSubdomainErrors } from '../../meta/names.ts';
import type { Findings } from './validation-rules.ts';

const DOMAIN_LENGTH_MAX = 253;
const SIGNER_LENGTH_MAX = 571;

/** `example.com/signer-name`. */
export function checkSignerName(found: Findings, path: string, name: string): void {
  if (name === '') {
    found.push(required(path));
    return;
  }
  const [domain = '', local, ...rest] = name.split('/');
  if (local === undefined || rest.length > 0) {
    const text = "must be a fully qualified domain and path of the form 'example.com/signer-name'";
    found.push(invalidValue(path, name, text));
    return;
  }
  if (domain.length > DOMAIN_LENGTH_MAX) found.push(tooLong(path, DOMAIN_LENGTH_MAX));
  const labels = domain.split('.');
  firstWrong(found, path, domain, labels, dnsLabelErrors);
  if (labels.length < 2) {
    const text = 'should be a domain with at least two segments separated by dots';
    found.push(invalidValue(path, domain, text));
  }
  firstWrong(found, path, local, local.split('.'), dnsSubdomainErrors);
  if (name.length > SIGNER_LENGTH_MAX) found.push(tooLong(path, SIGNER_LENGTH_MAX));
}

function firstWrong(
  found: Findings,
  path: string,
  value: string,
  labels: readonly string[],
  errorsOf: (label: string) => readonly string[],
): void {
  for (const label of labels) {
    const errors = errorsOf(label);
    for (const error of errors) {
      found.push(invalidValue(path, value, `validating label ${JSON.stringify(label)}: ${error}`));
    }
    if (errors.length > 0) return;
  }
}

/** What is wrong with the name of a trust bundle: `domain:signer:name`, or a name alone. */
export function bundleNameErrors(name: string): string[] {
  const colon = name.lastIndexOf(':');
  return dnsSubdomainErrors(colon < 0 ? name : name.slice(colon + 1));
}
