/** Which levels of PodSecurity a namespace has: by its labels, else by the configuration. */
import { ownMember } from '@megaplane/base/members';
import {
  aggregate,
  duplicate,
  fieldErrorText,
  invalidValue,
  type FieldError,
} from '@megaplane/machinery/fielderrors';
import { listAt, objectAt, stringAt } from '@megaplane/machinery/json';
import type { JsonObject, JsonValue } from '@megaplane/machinery/json-value';
import { dnsLabelErrors, dnsSubdomainErrors } from '@megaplane/machinery/names';
import type { Level } from './pod-security-checks.ts';

const PREFIX = 'pod-security.kubernetes.io/';
/** From what anybody may to what hardly anybody may. */
const LEVELS = ['privileged', 'baseline', 'restricted'] as const satisfies Level[];
const MODES = ['enforce', 'audit', 'warn'] as const;
export type Mode = (typeof MODES)[number];
const VERSION = /^v1\.(?:[0-9]|[1-9][0-9]*)$/;
/** The minor version that `latest` stands for. */
const LATEST = 36;

export interface Policy {
  readonly level: Level;
  readonly version: string;
}

/** The policies of a namespace, one for each mode. */
export type Policies = Readonly<Record<Mode, Policy>>;

export function minorOf({ version }: Policy): number {
  return version === 'latest' ? LATEST : Number(version.slice(3));
}

/** Of a version that this server does not know. */
export function isFuture(policy: Policy): boolean {
  return minorOf(policy) > LATEST;
}

export function policyText({ level, version }: Policy): string {
  return `${level}:${version}`;
}

/** Above 0 where `a` is the stricter one. */
export function compareLevels(a: Level, b: Level): number {
  return LEVELS.indexOf(a) - LEVELS.indexOf(b);
}

export function isSame(a: Policy, b: Policy): boolean {
  return a.level === b.level && a.version === b.version;
}

export function isFullyPrivileged(policies: Policies): boolean {
  return MODES.every((mode) => policies[mode].level === 'privileged');
}

const LEVEL_TEXT = `must be one of ${LEVELS.join(', ')}`;
const VERSION_TEXT = 'must be "latest" or "v1.x"';

function levelOf(text: string): Level | undefined {
  return LEVELS.find((level) => level === text);
}

function isVersion(text: string): boolean {
  return text === 'latest' || VERSION.test(text);
}

/**
 * What labels say, with what is wrong in them: pods are held to the strictest level then, audits
 * and warnings to none. Who enforces a level hears warnings of it where nothing is said of them.
 */
export function policiesOf(
  labels: JsonObject,
  defaults: Policies,
): { readonly policies: Policies; readonly faults: readonly FieldError[] } {
  const faults: FieldError[] = [];
  const wrong = (label: string, value: string, text: string): void =>
    void faults.push(invalidValue(`metadata.labels[${label}]`, value, text));
  const read = (mode: Mode): Policy => {
    let { level, version } = defaults[mode];
    const [levelLabel, versionLabel] = [PREFIX + mode, `${PREFIX}${mode}-version`];
    const saidLevel = ownMember(labels, levelLabel);
    if (typeof saidLevel === 'string') {
      const found = levelOf(saidLevel);
      if (found === undefined) wrong(levelLabel, saidLevel, LEVEL_TEXT);
      level = found ?? (mode === 'enforce' ? 'restricted' : 'privileged');
    }
    const saidVersion = ownMember(labels, versionLabel);
    if (typeof saidVersion === 'string') {
      if (!isVersion(saidVersion)) wrong(versionLabel, saidVersion, VERSION_TEXT);
      version = isVersion(saidVersion) ? saidVersion : 'latest';
    }
    return { level, version };
  };
  const enforce = read('enforce');
  const audit = read('audit');
  let warn = read('warn');
  const isSaid = levelOf(stringAt(labels, `${PREFIX}enforce`)) !== undefined;
  const saysWarn = labels[`${PREFIX}warn`] !== undefined;
  if (isSaid && !saysWarn && compareLevels(enforce.level, warn.level) > 0) {
    const saysVersion = labels[`${PREFIX}warn-version`] !== undefined;
    warn = saysVersion ? { ...warn, level: enforce.level } : enforce;
  }
  return { policies: { enforce, audit, warn }, faults };
}

/** Who is left alone, and what holds for namespaces that say nothing. */
export interface PodSecuritySettings {
  readonly defaults: Policies;
  readonly usernames: ReadonlySet<string>;
  readonly runtimeClasses: ReadonlySet<string>;
  readonly namespaces: ReadonlySet<string>;
}

export const OPEN: Policy = { level: 'privileged', version: 'latest' };
export const OPEN_SETTINGS: PodSecuritySettings = {
  defaults: { enforce: OPEN, audit: OPEN, warn: OPEN },
  usernames: new Set(),
  runtimeClasses: new Set(),
  namespaces: new Set(),
};

const API_VERSIONS: ReadonlySet<string> = new Set(
  ['v1', 'v1beta1', 'v1alpha1'].map((version) => `pod-security.admission.config.k8s.io/${version}`),
);

/** Reads a PodSecurityConfiguration. Throws an Error with all findings. */
export function readPodSecuritySettings(configuration: JsonValue): PodSecuritySettings {
  if (configuration === null) return OPEN_SETTINGS;
  const version = stringAt(configuration, 'apiVersion');
  const kind = stringAt(configuration, 'kind');
  if (kind !== 'PodSecurityConfiguration' || !API_VERSIONS.has(version)) {
    throw new Error(`no kind "${kind}" is registered for version "${version}"`);
  }
  const found: FieldError[] = [];
  const said = objectAt(configuration, 'defaults') ?? {};
  const policyFor = (mode: Mode): Policy => {
    const level = stringAt(said, mode) || 'privileged';
    const release = stringAt(said, `${mode}-version`) || 'latest';
    const known = levelOf(level);
    if (known === undefined) found.push(invalidValue(`defaults.${mode}`, level, LEVEL_TEXT));
    if (!isVersion(release)) {
      found.push(invalidValue(`defaults.${mode}-version`, release, VERSION_TEXT));
    }
    return { level: known ?? 'restricted', version: release };
  };
  const [enforce, warn, audit] = [policyFor('enforce'), policyFor('warn'), policyFor('audit')];
  const exempt = (field: string, check: (name: string) => readonly string[]): Set<string> =>
    exemptions(listAt(configuration, 'exemptions', field), `exemptions.${field}`, check, found);
  const namespaces = exempt('namespaces', dnsLabelErrors);
  const runtimeClasses = exempt('runtimeClasses', dnsSubdomainErrors);
  const usernames = exempt('usernames', (name) =>
    name === '' ? ['username must not be empty'] : [],
  );
  if (found.length > 0) throw new Error(aggregate(found.map(fieldErrorText)));
  return { defaults: { enforce, audit, warn }, usernames, runtimeClasses, namespaces };
}

function exemptions(
  list: readonly JsonValue[],
  path: string,
  check: (name: string) => readonly string[],
  found: FieldError[],
): Set<string> {
  const names = new Set<string>();
  for (const [index, one] of list.entries()) {
    const name = stringAt(one);
    const texts = check(name);
    if (texts.length > 0) found.push(invalidValue(`${path}[${index}]`, name, texts.join(', ')));
    else if (names.has(name)) found.push(duplicate(`${path}[${index}]`, name));
    else names.add(name);
  }
  return names;
}

/** Told to who gives levels to a namespace that is left alone; '' where nothing is to be told. */
export function exemptWarning(
  namespace: string,
  labels: JsonObject,
  policies: Policies,
  defaults: Policies,
): string {
  const isDefault = MODES.every((mode) => {
    const isOpen = policies[mode].level === 'privileged' && defaults[mode].level === 'privileged';
    return isOpen || isSame(policies[mode], defaults[mode]);
  });
  if (isFullyPrivileged(policies) || isDefault) return '';
  const said = MODES.filter(
    (mode) =>
      policies[mode].level !== 'privileged' &&
      (labels[PREFIX + mode] !== undefined || labels[`${PREFIX}${mode}-version`] !== undefined),
  ).map((mode) => `${mode}=${policyText(policies[mode])}`);
  return (
    `namespace ${JSON.stringify(namespace)} is exempt from Pod Security, and the policy ` +
    `(${said.join(', ')}) will be ignored`
  );
}
