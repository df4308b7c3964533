/** `--runtime-config`: versions of the API that are served, or not, otherwise than by default. */
import { resources, serveResource } from '@megaplane/machinery/kinds';

/** Sets of versions, in the order in which they count. */
const SETS: readonly (readonly [key: string, versions: RegExp])[] = [
  ['api/all', /^/],
  ['api/ga', /^v\d+$/],
  ['api/beta', /^v\d+beta\d+$/],
  ['api/alpha', /^v\d+alpha\d+$/],
];

const FLAG = '--runtime-config';

/** Values by key, the last of each; a key alone is `true`. */
function parseConfig(text: string): Map<string, string> {
  const found = new Map<string, string>();
  for (const part of text.split(',').map((one) => one.trim())) {
    if (part === '') continue;
    const at = part.indexOf('=');
    if (at < 0) found.set(part, '');
    else found.set(part.slice(0, at).trim(), part.slice(at + 1).trim());
  }
  return found;
}

/** As Go's strconv.ParseBool has it; nothing is true. */
function isOn(key: string, value: string): boolean {
  if (value === '' || /^(1|t|T|true|TRUE|True)$/.test(value)) return true;
  if (/^(0|f|F|false|FALSE|False)$/.test(value)) return false;
  throw new Error(`${FLAG}: invalid value of ${key}: ${value}; want true or false`);
}

/**
 * Of versions that are off by default: upstream serves these only where a feature gate is on, too.
 * Gates have no effect here, so only who names the version gets them.
 */
const GATED: ReadonlySet<string> = new Set([
  'clustertrustbundles',
  'podcertificaterequests',
  'leasecandidates',
  'storageversions',
  'podgroups',
  'workloads',
  'devicetaintrules',
  'resourcepoolstatusrequests',
]);

/** What is served, by version and resource, before anything is asked for. */
function usual(): Map<string, boolean> {
  return new Map(resources().map((one) => [`${one.apiVersion}/${one.resource}`, one.served]));
}

const USUAL: ReadonlyMap<string, boolean> = usual();

/** Puts a list of `group/version[/resource]=true,...` in force; throws where it cannot be. */
export function applyRuntimeConfig(text: string): void {
  const config = parseConfig(text);
  if (config.size === 1 && config.get('api/all') === 'false') {
    throw new Error(
      `${FLAG}: with api/all=false alone nothing would be served; name what is to be`,
    );
  }
  const served = new Map(USUAL);
  for (const [key, versions] of SETS) {
    const value = config.get(key);
    if (value === undefined) continue;
    const on = isOn(key, value);
    config.delete(key);
    for (const { apiVersion, version, resource } of resources()) {
      if (!versions.test(version)) continue;
      const name = `${apiVersion}/${resource}`;
      served.set(name, on && (USUAL.get(name) === true || !GATED.has(resource)));
    }
  }
  // Single resources have the last word, whatever the order of the list.
  const parts = [...config].toSorted(([a], [b]) => a.split('/').length - b.split('/').length);
  for (const [key, value] of parts) applyOne(served, key, isOn(key, value));
  for (const { apiVersion, resource } of resources()) {
    serveResource(apiVersion, resource, served.get(`${apiVersion}/${resource}`) === true);
  }
}

function applyOne(served: Map<string, boolean>, key: string, on: boolean): void {
  const parts = key.split('/');
  // `v1` and `api/v1` are the core group's.
  const isCore = parts[0] === 'v1' || (parts[0] === 'api' && parts[1] === 'v1');
  const [version, resource] = isCore
    ? ['v1', parts[parts[0] === 'v1' ? 1 : 2]]
    : [`${parts[0]}/${parts[1]}`, parts[2]];
  if (parts.length > 3 || (parts.length < 2 && !isCore)) {
    throw new Error(`${FLAG}: ${key} is no version; want group/version=true`);
  }
  const found = [...served.keys()].filter((name) =>
    resource === undefined ? name.startsWith(`${version}/`) : name === `${version}/${resource}`,
  );
  if (found.length === 0) {
    throw new Error(`${FLAG}: ${key} is not known; these are: ${knownVersions()}`);
  }
  for (const name of found) served.set(name, on);
}

function knownVersions(): string {
  return [...new Set(resources().map(({ apiVersion }) => apiVersion))].join(', ');
}
