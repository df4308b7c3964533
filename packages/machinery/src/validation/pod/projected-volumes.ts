/** Volumes that are files made of other objects. */
import { forbiddenField, invalidValue, notSupported, required } from '../../meta/fielderrors.ts';
import { listAt, objectAt, stringAt } from '../../json/json.ts';
import { isNumber, type JsonObject, type JsonValue } from '../../json/json-value.ts';
import { goForm } from '../../gotext/go-value-format.ts';
import { checkFieldReference, checkResourceReference, FILE_FIELDS } from './downward-api.ts';
import { checkLocalPath } from '../field/validation-paths.ts';
import { checkSelector, eachObject, type Findings } from '../field/validation-rules.ts';
import { bundleNameErrors, checkSignerName } from '../field/validation-signers.ts';

const FILE_MODE_MAX = 0o777;
const TOKEN_SECONDS_MIN = 600;
const CONFLICT = 'conflicting duplicate paths';

/** The mode of a file. */
export function checkMode(found: Findings, path: string, mode: JsonValue | undefined): void {
  if (!isNumber(mode) || (mode >= 0 && mode <= FILE_MODE_MAX)) return;
  const text = 'must be a number between 0 and 0777 (octal), both inclusive';
  found.push(invalidValue(path, mode, text));
}

/** Keys of a secret or of a config map, and the files that they become. */
export function checkItems(
  found: Findings,
  path: string,
  source: JsonObject,
  taken?: (target: string) => void,
): void {
  checkMode(found, `${path}.defaultMode`, source['defaultMode']);
  eachObject(listAt(source, 'items'), `${path}.items`, (item, at) => {
    if (stringAt(item, 'key') === '') found.push(required(`${at}.key`));
    const target = stringAt(item, 'path');
    if (target === '') found.push(required(`${at}.path`));
    checkLocalPath(found, `${at}.path`, target);
    checkMode(found, `${at}.mode`, item['mode']);
    if (target !== '') taken?.(target);
  });
}

/** Files of one volume from several sources, each at a path of its own. */
export function checkProjected(found: Findings, path: string, volume: JsonObject): void {
  checkMode(found, `${path}.defaultMode`, volume['defaultMode']);
  const paths = new Set<string>();
  const take = (target: string, blamed: string): void => {
    if (paths.has(target)) found.push(invalidValue(path, blamed, CONFLICT));
    paths.add(target);
  };
  eachObject(listAt(volume, 'sources'), `${path}.sources`, (source, at) => {
    for (const kind of ['secret', 'configMap']) {
      const projection = objectAt(source, kind);
      if (projection === undefined) continue;
      const name = stringAt(projection, 'name');
      if (name === '') found.push(required(`${at}.${kind}.name`));
      checkItems(found, `${at}.${kind}`, projection, (target) => take(target, name));
    }
    const downward = `${at}.downwardAPI`;
    eachObject(listAt(source, 'downwardAPI', 'items'), downward, (file) => {
      checkDownwardFile(found, downward, file);
      const target = stringAt(file, 'path');
      if (target !== '') take(target, target);
    });
    const token = objectAt(source, 'serviceAccountToken');
    if (token !== undefined) checkToken(found, `${at}.serviceAccountToken`, path, token);
    const bundle = objectAt(source, 'clusterTrustBundle');
    if (bundle !== undefined) {
      checkBundle(found, `${at}.clusterTrustBundle`, bundle);
      take(stringAt(bundle, 'path'), stringAt(bundle, 'path'));
    }
    const certificate = objectAt(source, 'podCertificate');
    if (certificate !== undefined) {
      checkCertificate(found, `${at}.podCertificate`, certificate, (target) =>
        take(target, target),
      );
    }
    const kinds = ['secret', 'configMap', 'downwardAPI', 'serviceAccountToken'];
    const all = [...kinds, 'clusterTrustBundle', 'podCertificate'];
    if (all.filter((kind) => objectAt(source, kind) !== undefined).length < 2) return;
    found.push(forbiddenField(at, 'may not specify more than 1 volume type per source'));
  });
}

/** One file about the pod; upstream names the volume, not the file, where it finds something. */
export function checkDownwardFile(found: Findings, path: string, file: JsonObject): void {
  const name = stringAt(file, 'path');
  if (name === '') found.push(required(`${path}.path`));
  checkLocalPath(found, `${path}.path`, name);
  const field = objectAt(file, 'fieldRef');
  const resource = objectAt(file, 'resourceFieldRef');
  if (field !== undefined) {
    checkFieldReference(found, `${path}.fieldRef`, field, FILE_FIELDS);
    if (resource !== undefined) {
      const text = 'fieldRef and resourceFieldRef can not be specified simultaneously';
      found.push(invalidValue(path, 'resource', text));
    }
  } else if (resource !== undefined) {
    checkResourceReference(found, `${path}.resourceFieldRef`, resource, true);
  } else found.push(required(path, 'one of fieldRef and resourceFieldRef is required'));
  checkMode(found, `${path}.mode`, file['mode']);
}

/** Where the path of a token is amiss, upstream names the volume's path. */
function checkToken(found: Findings, path: string, volume: string, token: JsonObject): void {
  const seconds = token['expirationSeconds'];
  if (isNumber(seconds) && seconds < TOKEN_SECONDS_MIN) {
    const text = 'may not specify a duration less than 10 minutes';
    found.push(invalidValue(`${path}.expirationSeconds`, seconds, text));
  } else if (isNumber(seconds) && seconds > 2 ** 32) {
    const text = 'may not specify a duration larger than 2^32 seconds';
    found.push(invalidValue(`${path}.expirationSeconds`, seconds, text));
  }
  const target = stringAt(token, 'path');
  if (target === '') found.push(required(`${volume}.path`));
  else checkLocalPath(found, `${volume}.path`, target);
}

function checkBundle(found: Findings, path: string, bundle: JsonObject): void {
  const { name, signerName } = bundle;
  const selector = objectAt(bundle, 'labelSelector');
  if (typeof name === 'string' && typeof signerName === 'string') {
    const value = goForm('core.v1.ClusterTrustBundleProjection', bundle);
    found.push(invalidValue(path, value, 'only one of name and signerName may be used'));
  } else if (typeof name === 'string') {
    if (name === '') found.push(required(`${path}.name`, 'must be a valid object name'));
    for (const fault of bundleNameErrors(name)) {
      const text = `not a valid clustertrustbundlename: ${fault}`;
      found.push(invalidValue(`${path}.name`, name, text));
    }
    if (selector !== undefined) {
      const text = 'labelSelector must be unset if name is specified';
      found.push(invalidValue(`${path}.labelSelector`, selector, text));
    }
  } else if (typeof signerName === 'string') {
    const at = `${path}.signerName`;
    if (signerName === '') found.push(required(at, 'must be a valid signer name'));
    checkSignerName(found, at, signerName);
    checkSelector(found, `${path}.labelSelector`, selector);
  } else found.push(required(path, 'either name or signerName must be specified'));
  const target = stringAt(bundle, 'path');
  if (target === '') found.push(required(`${path}.path`));
  checkLocalPath(found, `${path}.path`, target);
}

const KEY_TYPES = ['RSA3072', 'RSA4096', 'ECDSAP256', 'ECDSAP384', 'ECDSAP521', 'ED25519'];
const CERTIFICATE_SECONDS_MIN = 3600;
const CERTIFICATE_SECONDS_MAX = 91 * 86_400;
const KUBERNETES_SECONDS_MAX = 86_400;

function checkCertificate(
  found: Findings,
  path: string,
  certificate: JsonObject,
  take: (target: string) => void,
): void {
  const signer = stringAt(certificate, 'signerName');
  checkSignerName(found, `${path}.signerName`, signer);
  const type = stringAt(certificate, 'keyType');
  if (!KEY_TYPES.includes(type)) found.push(notSupported(`${path}.keyType`, type, KEY_TYPES));
  const seconds = certificate['maxExpirationSeconds'];
  if (isNumber(seconds)) {
    const at = `${path}.maxExpirationSeconds`;
    const isOurs = /^([^/]*\.)?kubernetes\.io\//.test(signer);
    const most = isOurs ? KUBERNETES_SECONDS_MAX : CERTIFICATE_SECONDS_MAX;
    const limit =
      seconds < CERTIFICATE_SECONDS_MIN
        ? `>= ${CERTIFICATE_SECONDS_MIN}`
        : seconds > most
          ? `<= ${most}`
          : '';
    const text = `if provided, maxExpirationSeconds must be ${limit}`;
    if (limit !== '') found.push(invalidValue(at, seconds, text));
  }
  let count = 0;
  for (const field of ['credentialBundlePath', 'keyPath', 'certificateChainPath']) {
    const target = stringAt(certificate, field);
    if (target === '') continue;
    count++;
    checkLocalPath(found, `${path}.${field}`, target);
    take(target);
  }
  if (count > 0) return;
  const text = 'specify at least one of credentialBundlePath, keyPath, and certificateChainPath';
  found.push(required(path, text));
}
