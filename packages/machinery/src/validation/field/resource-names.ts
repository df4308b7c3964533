/** Names of resources: which are standard where, which are those of others, which come whole. */
import { invalidValue, typedText } from '../../meta/fielderrors.ts';
import { qualifiedNameErrors } from '../../meta/names.ts';
import { COUNTED_RESOURCES, invalidEach, type Findings } from './validation-rules.ts';

const COMPUTE = ['cpu', 'memory', 'ephemeral-storage'];
const BOUNDED = COMPUTE.flatMap((name) => [name, `requests.${name}`, `limits.${name}`]);
const QUOTA_RESOURCES = new Set([...BOUNDED, 'requests.storage', ...COUNTED_RESOURCES]);
const QUOTA_PAGES = /^(requests\.)?hugepages-/;

/** What quotas may count besides resources of others. */
export function isQuotaResource(name: string): boolean {
  return QUOTA_RESOURCES.has(name) || QUOTA_PAGES.test(name);
}

function isNative(name: string): boolean {
  return !name.includes('/') || name.includes('kubernetes.io/');
}

/** Whether less may be asked for than is allowed. */
export function isOvercommitted(name: string): boolean {
  return isNative(name) && !name.startsWith('hugepages-');
}

/** Resources of others, counted whole: their names must do for quotas too. */
export function isExtendedResource(name: string): boolean {
  if (isNative(name) || name.startsWith('requests.')) return false;
  return qualifiedNameErrors(`requests.${name}`).length === 0;
}

/** Resources of which there are no parts. */
export function isWholeResource(name: string): boolean {
  return COUNTED_RESOURCES.includes(name) || isExtendedResource(name);
}

/** A name that is standard anywhere, or has a domain. False: something was found. */
export function checkResourceName(found: Findings, path: string, name: string): boolean {
  const texts = qualifiedNameErrors(name);
  invalidEach(found, path, typedText(name), texts);
  if (texts.length > 0) return false;
  if (name.includes('/') || name === 'storage' || isQuotaResource(name)) return true;
  const text = 'must be a standard resource type or fully qualified';
  found.push(invalidValue(path, typedText(name), text));
  return false;
}

/** A name of what containers may ask for. */
export function checkContainerResource(found: Findings, path: string, name: string): void {
  checkResourceName(found, path, name);
  if (!name.includes('/')) {
    if (COMPUTE.includes(name) || name.startsWith('hugepages-')) return;
    found.push(invalidValue(path, typedText(name), 'must be a standard resource for containers'));
  } else if (!isNative(name) && !isExtendedResource(name)) {
    const text = "doesn't follow extended resource name standard";
    found.push(invalidValue(path, typedText(name), text));
  }
}
