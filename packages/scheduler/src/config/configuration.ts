/** KubeSchedulerConfiguration v1: read, completed and checked as upstream does, with its words. */
import { parseGoDuration } from '@megaplane/machinery/times';
import { ownMember } from '@megaplane/base/members';
import { aggregate } from '@megaplane/machinery/fielderrors';
import { isObject, type JsonObject, type JsonValue } from '@megaplane/machinery/json-value';
import { pointsOfPlugins, type ProfileConfiguration } from '../framework/runtime/profile.ts';
import type { UserPlugin } from '../framework/runtime/user-plugin.ts';
import { configurationErrors } from './configuration-checks.ts';
import { ARGUMENTS, CONFIGURATION } from './schema/configuration-schema.ts';
import { API_VERSION, KIND } from './configuration-defaults.ts';
import { defaultedArguments, defaultedConfiguration, givenSets } from './configuration-defaults.ts';
import { profileError } from './profile-checks.ts';
import { listAt, objectAt, textAt } from './schema/members.ts';
import { jsonTypeOf, strictDecode, strictText } from './schema/strict-decode.ts';
import type { StructSchema } from './schema/strict-decode.ts';
import type { NumberLiterals } from '@megaplane/machinery/number-literals';

export interface SchedulerConfiguration {
  readonly profiles: readonly ProfileConfiguration[];
  readonly percentageOfNodesToScore: number;
  readonly initialBackoffMs: number;
  readonly maxBackoffMs: number;
  readonly leaderElection: LeaderElectionConfiguration;
  readonly extenders: readonly ExtenderConfiguration[];
  /** `clientConnection.kubeconfig`, or empty. */
  readonly kubeconfig: string;
  /** As upstream shows it: the whole v1 object with all defaults. */
  readonly complete: JsonObject;
}

export interface LeaderElectionConfiguration {
  readonly leaderElect: boolean;
  readonly namespace: string;
  readonly name: string;
  readonly leaseDurationMs: number;
  readonly renewDeadlineMs: number;
  readonly retryPeriodMs: number;
}

export interface ExtenderConfiguration {
  readonly urlPrefix?: string;
  readonly filterVerb?: string;
  readonly preemptVerb?: string;
  readonly prioritizeVerb?: string;
  readonly weight?: number;
  readonly bindVerb?: string;
  readonly enableHTTPS?: boolean;
  readonly tlsConfig?: ExtenderTls;
  /** A Go duration; none or 0: 5 s. */
  readonly httpTimeout?: string;
  readonly nodeCacheCapable?: boolean;
  readonly managedResources?: readonly {
    readonly name: string;
    readonly ignoredByScheduler?: boolean;
  }[];
  readonly ignorable?: boolean;
}

export interface ExtenderTls {
  readonly insecure?: boolean;
  readonly serverName?: string;
  readonly certFile?: string;
  readonly keyFile?: string;
  readonly caFile?: string;
  /** Base64, as all data here. */
  readonly certData?: string;
  readonly keyData?: string;
  readonly caData?: string;
}

/** The configuration, or all that is wrong with it. */
export type ParsedConfiguration =
  | { readonly ok: true; readonly configuration: SchedulerConfiguration }
  | { readonly ok: false; readonly errors: readonly string[] };

const NANOS_PER_MS = 1_000_000n;

export function durationMs(text: JsonValue | undefined): number {
  const nanos = typeof text === 'string' ? parseGoDuration(text) : undefined;
  return Number((nanos ?? 0n) / NANOS_PER_MS);
}

/** As upstream says that it knows no such type, with the place of its list of types. */
function unregistered(kind: string, version: string): string {
  const what = `no kind ${JSON.stringify(kind)} is registered for version`;
  return `${what} ${JSON.stringify(version)} in scheme "pkg/runtime/scheme.go:111"`;
}

function isRegistered(kind: string, version: string): boolean {
  if (version !== API_VERSION) return false;
  return kind === KIND || Object.keys(ARGUMENTS).some((one) => `${one}Args` === kind);
}

/** What makes a value no KubeSchedulerConfiguration v1; empty if it is one. */
function typeError(value: JsonValue, source: string | undefined): string {
  // An empty file is as good as an empty object.
  if (value === null) return typeError({}, source);
  if (!isObject(value)) return untyped(value);
  const unread = strictDecode(typeMembers(value), TYPE).error;
  if (unread !== '') return `couldn't get version/kind; json parse error: ${unread}`;
  const { apiVersion, kind } = typeOf(value);
  const fault = versionError(apiVersion);
  if (fault !== '') return fault;
  const where = source === undefined ? '' : ` in '${source}'`;
  if (kind === '') return `Object 'Kind' is missing${where}`;
  if (apiVersion === '') return `Object 'apiVersion' is missing${where}`;
  if (apiVersion === API_VERSION && kind === KIND) return '';
  if (isRegistered(kind, apiVersion)) {
    return otherKindError(value, kind);
  }
  return unregistered(kind, apiVersion);
}

/** What is wrong with arguments that stand where the configuration should. */
function otherKindError(value: JsonObject, kind: string): string {
  const schema = ownMember(ARGUMENTS, kind.slice(0, -'Args'.length));
  const { error, unknown } = schema === undefined ? NOTHING : strictDecode(value, schema);
  if (error !== '') return error;
  if (unknown.length === 0) return `couldn't decode as ${KIND}, got ${API_VERSION}, Kind=${kind}: `;
  return strictText(unknown.map((path) => `unknown field ${JSON.stringify(path)}`));
}

const NOTHING = { error: '', unknown: [] };

/** What upstream says of a value where it looks for a type. */
function untyped(value: JsonValue): string {
  const found = jsonTypeOf(value);
  const member = (name: string, json: string): string =>
    `${name} string ${JSON.stringify(`json:${JSON.stringify(`${json},omitempty`)}`)}`;
  const type = `struct { ${member('APIVersion', 'apiVersion')}; ${member('Kind', 'kind')} }`;
  const why = `json: cannot unmarshal ${found} into Go value of type ${type}`;
  return `couldn't get version/kind; json parse error: ${why}`;
}

/** The two members that are looked at before all others. */
const TYPE: StructSchema = {
  ...{ kind: 'struct', type: '' },
  members: { apiVersion: { kind: 'string' }, kind: { kind: 'string' } },
};

/** Upstream looks for these two in any case; the last one counts. */
function typeMembers(value: JsonObject): JsonObject {
  const found: JsonObject = {};
  for (const [name, inner] of Object.entries(value)) {
    const folded = name.toLowerCase();
    if (folded === 'apiversion') found['apiVersion'] = inner;
    if (folded === 'kind') found['kind'] = inner;
  }
  return found;
}

function typeOf(value: JsonObject): { readonly apiVersion: string; readonly kind: string } {
  const found = typeMembers(value);
  return { apiVersion: textAt(found, 'apiVersion'), kind: textAt(found, 'kind') };
}

function versionError(apiVersion: string): string {
  const isVersion = apiVersion.split('/').length <= 2;
  return isVersion ? '' : `unexpected GroupVersion string: ${apiVersion}`;
}

/** What makes arguments those of another type; empty if they are their plugin's own. */
function argumentTypeError(args: JsonObject, plugin: string, type: string): string {
  const given = typeOf(args);
  const [kind, apiVersion] = [given.kind || type, given.apiVersion || API_VERSION];
  const whose = `decoding args for plugin ${plugin}`;
  const unread = strictDecode(typeMembers(args), TYPE).error;
  if (unread !== '') return `${whose}: couldn't get version/kind; json parse error: ${unread}`;
  const fault = versionError(apiVersion);
  if (fault !== '') return `${whose}: ${fault}`;
  if (!isRegistered(kind, apiVersion)) return `${whose}: ${unregistered(kind, apiVersion)}`;
  if (kind === type) return '';
  const group = 'kubescheduler.config.k8s.io';
  return `args for plugin ${plugin} were not of type ${type}.${group}, got ${kind}.${group}`;
}

/** Arguments of plugins in place, decoded by their own types. */
function decodeArguments(
  configuration: JsonObject,
  numbers: NumberLiterals | undefined,
): { error: string; unknown: string[] } {
  const unknown: string[] = [];
  for (const [i, profile] of listAt(configuration, 'profiles').entries()) {
    for (const [j, entry] of listAt(profile, 'pluginConfig').entries()) {
      if (!isObject(entry)) continue;
      const plugin = typeof entry['name'] === 'string' ? entry['name'] : '';
      const schema = ownMember(ARGUMENTS, plugin);
      if (schema === undefined) continue;
      const where = `decoding .profiles[${i}].pluginConfig[${j}]`;
      const args = entry['args'] ?? {};
      const whose = `decoding args for plugin ${plugin}`;
      const type = schema.type.slice(schema.type.indexOf('.') + 1);
      const fault = isObject(args)
        ? argumentTypeError(args, plugin, type)
        : `${whose}: ${untyped(args)}`;
      if (fault !== '') return { error: `${where}: ${fault}`, unknown };
      const decoded = strictDecode(args, schema, numbers);
      if (decoded.error !== '') return { error: `${where}: ${whose}: ${decoded.error}`, unknown };
      entry['args'] = decoded.value;
      if (decoded.unknown.length === 0) continue;
      const text = strictText(
        decoded.unknown.map((path) => `unknown field ${JSON.stringify(path)}`),
      );
      unknown.push(`${where}: ${strictText([`${whose}: ${text}`])}`);
    }
  }
  return { error: '', unknown };
}

function refused(error: string): ParsedConfiguration {
  return { ok: false, errors: [error] };
}

/** Where a configuration was read from. */
export interface ConfigurationSource {
  /** For errors that show it. */
  readonly text: string;
  /** What reading found wrong with the text, such as members that are there twice. */
  readonly repeated: readonly string[];
  /** How numbers are written, where that tells what they can be. */
  readonly numbers?: NumberLiterals;
}

/** `own`: plugins of users that profiles may name. */
export function parseConfiguration(
  value: JsonValue,
  own: readonly UserPlugin[] = [],
  source?: ConfigurationSource,
): ParsedConfiguration {
  const wrongType = typeError(value, source?.text);
  if (wrongType !== '') return refused(wrongType);
  const { value: decoded, error, unknown } = strictDecode(value, CONFIGURATION, source?.numbers);
  if (error !== '' || !isObject(decoded)) return refused(error);
  const nested = decodeArguments(decoded, source?.numbers);
  if (nested.error !== '') return refused(nested.error);
  const strict = [
    ...(source?.repeated ?? []),
    ...unknown.map((path) => `unknown field ${JSON.stringify(path)}`),
    ...nested.unknown,
  ];
  if (strict.length > 0) return refused(strictText(strict));
  const complete = withArguments(defaultedConfiguration(decoded));
  const errors = configurationErrors(complete);
  if (errors.length > 0) return { ok: false, errors };
  const configuration = configurationOf(decoded, complete);
  for (const profile of configuration.profiles) {
    const fault = profileError(profile, pointsOfPlugins(own));
    if (fault === '') continue;
    const name = profile.schedulerName ?? '';
    return refused(`initializing profiles: creating profile for scheduler name ${name}: ${fault}`);
  }
  return { ok: true, configuration };
}

/** All faults as one text, as upstream prints them. */
export function errorText(errors: readonly string[]): string {
  return aggregate(errors);
}

/** Arguments given, completed, and those of all other plugins that are on and have some. */
function withArguments(complete: JsonObject): JsonObject {
  const profiles = listAt(complete, 'profiles').map((profile) => {
    if (!isObject(profile)) return profile;
    const given = listAt(profile, 'pluginConfig').filter(isObject);
    const completed = given.map((entry): JsonObject => {
      const { name, args } = entry;
      if (typeof name !== 'string' || ownMember(ARGUMENTS, name) === undefined) return entry;
      return { name, args: completeArguments(name, isObject(args) ? args : {}) };
    });
    const sets = Object.values(isObject(profile['plugins']) ? profile['plugins'] : {});
    const active = new Set(
      sets.flatMap((set = null) =>
        listAt(set, 'enabled').map((one) => (one as JsonObject)['name']),
      ),
    );
    const others = Object.keys(ARGUMENTS).filter(
      (name) => active.has(name) && !given.some((one) => one['name'] === name),
    );
    const rest = others.map((name): JsonObject => ({ name, args: completeArguments(name, {}) }));
    return { ...profile, pluginConfig: [...completed, ...rest] };
  });
  return { ...complete, profiles };
}

function completeArguments(name: string, args: JsonObject): JsonObject {
  const type = { apiVersion: API_VERSION, kind: `${name}Args` };
  return { ...defaultedArguments(name, args), ...type };
}

/** Only what differs from the defaults: profiles without arguments of their own are faster. */
function ownArguments(profile: JsonObject): NonNullable<ProfileConfiguration['pluginConfig']> {
  return listAt(profile, 'pluginConfig').flatMap((entry) => {
    const { name, args = {} } = entry as { name: string; args?: JsonObject };
    const { apiVersion: _, kind: __, ...rest } = args;
    const isDefault =
      ownMember(ARGUMENTS, name) !== undefined &&
      JSON.stringify(completeArguments(name, rest)) === JSON.stringify(completeArguments(name, {}));
    return isDefault ? [] : [{ name, args: defaultedArguments(name, rest) }];
  });
}

function configurationOf(given: JsonObject, complete: JsonObject): SchedulerConfiguration {
  const profiles = listAt(given, 'profiles').filter(isObject);
  const names = listAt(complete, 'profiles').map((one) => textAt(one, 'schedulerName'));
  const election = objectAt(complete, 'leaderElection');
  const decoded = listAt(complete, 'extenders') as readonly ExtenderConfiguration[];
  // no weight is taken by more than a double holds
  const extenders = decoded.map((one) => ({ ...one, weight: Number(one.weight ?? 0) }));
  const ignored = extenders
    .flatMap(({ managedResources = [] }) => managedResources)
    .flatMap(({ name, ignoredByScheduler }) => (ignoredByScheduler === true ? [name] : []));
  return {
    profiles: (profiles.length === 0 ? [{}] : profiles).map((profile, index) => {
      const pluginConfig = withIgnored(ownArguments(profile), ignored);
      const plugins = givenSets(profile);
      return { ...profile, schedulerName: names[index] ?? '', plugins, pluginConfig };
    }),
    // Unset means all nodes here: looking at all costs no more than looking at some.
    percentageOfNodesToScore: Number(given['percentageOfNodesToScore'] ?? 100),
    initialBackoffMs: Number(complete['podInitialBackoffSeconds']) * 1000,
    maxBackoffMs: Number(complete['podMaxBackoffSeconds']) * 1000,
    leaderElection: {
      leaderElect: election['leaderElect'] !== false,
      namespace: textAt(election, 'resourceNamespace'),
      name: textAt(election, 'resourceName'),
      leaseDurationMs: durationMs(election['leaseDuration']),
      renewDeadlineMs: durationMs(election['renewDeadline']),
      retryPeriodMs: durationMs(election['retryPeriod']),
    },
    extenders,
    kubeconfig: textAt(objectAt(complete, 'clientConnection'), 'kubeconfig'),
    complete: asShown(showingIgnored(complete, ignored)),
  };
}

/** What extenders look after is none of the fit's business, whatever its arguments say. */
function withIgnored(
  configs: NonNullable<ProfileConfiguration['pluginConfig']>,
  ignored: readonly string[],
): NonNullable<ProfileConfiguration['pluginConfig']> {
  if (ignored.length === 0) return configs;
  const name = 'NodeResourcesFit';
  const own = configs.find((one) => one.name === name)?.args ?? defaultedArguments(name, {});
  const args = { ...own, ignoredResources: ignored };
  return [...configs.filter((one) => one.name !== name), { name, args }];
}

function showingIgnored(complete: JsonObject, ignored: readonly string[]): JsonObject {
  if (ignored.length === 0) return complete;
  const profiles = listAt(complete, 'profiles').map((profile) => {
    const pluginConfig = listAt(profile, 'pluginConfig').map((entry) => {
      const { name, args } = entry as JsonObject;
      if (name !== 'NodeResourcesFit' || !isObject(args)) return entry;
      return { name, args: { ...args, ignoredResources: [...ignored] } };
    });
    return { ...(profile as JsonObject), pluginConfig };
  });
  return { ...complete, profiles };
}

/** As upstream shows what it made of one: arguments by name, no sets that say nothing. */
function asShown(complete: JsonObject): JsonObject {
  const profiles = listAt(complete, 'profiles')
    .filter(isObject)
    .map((profile): JsonObject => {
      const plugins = objectAt(profile, 'plugins');
      const pluginConfig = listAt(profile, 'pluginConfig')
        .filter(isObject)
        .filter((entry) => isShown(entry, plugins))
        .map((entry): JsonObject => ({ ...entry, ...shownArguments(entry) }))
        .toSorted((left, right) => (textAt(left, 'name') < textAt(right, 'name') ? -1 : 1));
      const sets = Object.entries(plugins).map(([point, set]) => {
        const said = Object.entries(isObject(set) ? set : {}).filter(
          ([, entries]) => Array.isArray(entries) && entries.length > 0,
        );
        return [point, Object.fromEntries(said)] as const;
      });
      return { ...profile, plugins: Object.fromEntries(sets), pluginConfig };
    });
  const { extenders: listed, ...others } = complete;
  if (!Array.isArray(listed) || listed.length === 0) return { ...others, profiles };
  const extenders = listed.filter(isObject).map((extender): JsonObject => {
    const said = Object.entries(extender).filter(([, value]) => !isNothing(value));
    return { urlPrefix: '', ...Object.fromEntries(said) };
  });
  return { ...complete, profiles, extenders };
}

/** Without lists that are empty, but for terms, of which none is not the same as nothing said. */
function shownArguments({ name, args }: JsonObject): JsonObject {
  if (typeof name !== 'string' || ownMember(ARGUMENTS, name) === undefined) return {};
  const shown = (value: JsonValue): JsonValue => {
    if (Array.isArray(value)) return value.map(shown);
    if (!isObject(value)) return value;
    const members = Object.entries(value).filter(
      ([member, inner]) =>
        member === 'nodeSelectorTerms' || !Array.isArray(inner) || inner.length > 0,
    );
    return Object.fromEntries(members.map(([member, inner = null]) => [member, shown(inner)]));
  };
  return { args: shown(args ?? null) };
}

function isNothing(value: JsonValue | undefined): boolean {
  if (Array.isArray(value)) return value.length === 0;
  return value === '' || value === 0 || value === false;
}

/** Arguments of a known type, and whatever others that are on were given. */
function isShown(entry: JsonObject, plugins: JsonObject): boolean {
  const name = textAt(entry, 'name');
  if (ownMember(ARGUMENTS, name) !== undefined) return true;
  if ((entry['args'] ?? null) === null) return false;
  return Object.values(plugins).some((set = null) =>
    listAt(set, 'enabled').some((one) => textAt(one, 'name') === name),
  );
}

function defaultConfiguration(): SchedulerConfiguration {
  const complete = withArguments(defaultedConfiguration({}));
  return configurationOf({}, complete);
}

export const DEFAULT_CONFIGURATION: SchedulerConfiguration = defaultConfiguration();
