/** KubeSchedulerConfiguration v1: read, completed and checked as upstream does, with its words. */
import { parseGoDuration } from '@megaplane/machinery/cel/time-library';
import { aggregate } from '@megaplane/machinery/fielderrors';
import { isObject, type JsonObject, type JsonValue } from '@megaplane/machinery/json-value';
import { pointsOfPlugins, type ProfileConfiguration } from '../profile.ts';
import type { UserPlugin } from '../user-plugin.ts';
import { configurationErrors } from './configuration-checks.ts';
import { ARGUMENTS, CONFIGURATION } from './configuration-schema.ts';
import { API_VERSION, KIND } from './configuration-defaults.ts';
import { defaultedArguments, defaultedConfiguration, givenSets } from './configuration-defaults.ts';
import { profileError } from './profile-checks.ts';
import { listAt, objectAt, textAt } from './members.ts';
import { strictDecode, strictText } from './strict-decode.ts';

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
function unregistered(kind: JsonValue, version: JsonValue): string {
  const what = `no kind ${JSON.stringify(kind)} is registered for version`;
  return `${what} ${JSON.stringify(version)} in scheme "pkg/runtime/scheme.go:111"`;
}

function isRegistered(kind: JsonValue, version: JsonValue): boolean {
  if (version !== API_VERSION) return false;
  return kind === KIND || Object.keys(ARGUMENTS).some((one) => `${one}Args` === kind);
}

/** What makes a value no KubeSchedulerConfiguration v1; empty if it is one. */
function typeError(value: JsonValue): string {
  if (!isObject(value)) return 'the configuration is no object';
  const { apiVersion = '', kind = '' } = value;
  if (kind === '') return "Object 'Kind' is missing";
  if (apiVersion === '') return "Object 'apiVersion' is missing";
  if (apiVersion === API_VERSION && kind === KIND) return '';
  if (isRegistered(kind, apiVersion)) {
    return `couldn't decode as ${KIND}, got ${API_VERSION}, Kind=${textAt(value, 'kind')}`;
  }
  return unregistered(kind, apiVersion);
}

/** Arguments of plugins in place, decoded by their own types. */
function decodeArguments(configuration: JsonObject): { error: string; unknown: string[] } {
  const unknown: string[] = [];
  for (const [i, profile] of listAt(configuration, 'profiles').entries()) {
    for (const [j, entry] of listAt(profile, 'pluginConfig').entries()) {
      if (!isObject(entry)) continue;
      const plugin = typeof entry['name'] === 'string' ? entry['name'] : '';
      const schema = ARGUMENTS[plugin];
      if (schema === undefined) continue;
      const where = `decoding .profiles[${i}].pluginConfig[${j}]`;
      const args = entry['args'] ?? {};
      const whose = `decoding args for plugin ${plugin}`;
      if (isObject(args) && (args['kind'] ?? schema.type.slice(3)) !== schema.type.slice(3)) {
        const { kind = '', apiVersion = API_VERSION } = args;
        if (!isRegistered(kind, apiVersion)) {
          return { error: `${where}: ${whose}: ${unregistered(kind, apiVersion)}`, unknown };
        }
        const group = 'kubescheduler.config.k8s.io';
        const wanted = `${schema.type.slice(3)}.${group}`;
        const text = `args for plugin ${plugin} were not of type ${wanted}`;
        return { error: `${where}: ${text}, got ${textAt(args, 'kind')}.${group}`, unknown };
      }
      const decoded = strictDecode(args, schema);
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

/** `own`: plugins of users that profiles may name. */
export function parseConfiguration(
  value: JsonValue,
  own: readonly UserPlugin[] = [],
): ParsedConfiguration {
  const wrongType = typeError(value);
  if (wrongType !== '') return refused(wrongType);
  const { value: decoded, error, unknown } = strictDecode(value, CONFIGURATION);
  if (error !== '' || !isObject(decoded)) return refused(error);
  const nested = decodeArguments(decoded);
  if (nested.error !== '') return refused(nested.error);
  const strict = [
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
      if (typeof name !== 'string' || ARGUMENTS[name] === undefined) return entry;
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
      ARGUMENTS[name] !== undefined &&
      JSON.stringify(completeArguments(name, rest)) === JSON.stringify(completeArguments(name, {}));
    return isDefault ? [] : [{ name, args: defaultedArguments(name, rest) }];
  });
}

function configurationOf(given: JsonObject, complete: JsonObject): SchedulerConfiguration {
  const profiles = listAt(given, 'profiles').filter(isObject);
  const names = listAt(complete, 'profiles').map((one) => textAt(one, 'schedulerName'));
  const election = objectAt(complete, 'leaderElection');
  const extenders = listAt(complete, 'extenders') as readonly ExtenderConfiguration[];
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
    complete: showingIgnored(complete, ignored),
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

function defaultConfiguration(): SchedulerConfiguration {
  const complete = withArguments(defaultedConfiguration({}));
  return configurationOf({}, complete);
}

export const DEFAULT_CONFIGURATION: SchedulerConfiguration = defaultConfiguration();
