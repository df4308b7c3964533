// shell: reads configuration files
/** `--authorization-*`: from flags and files to the authorizers of a server. */
import { readFileSync } from 'node:fs';
import { parse } from 'yaml';
import type { JsonValue } from '@megaplane/machinery/json-value';
import { parseDuration } from '../storage/etcd3/etcd-options.ts';
import {
  MODES,
  readAuthorizationConfiguration,
  type ModeEntry,
  type WebhookEntry,
} from './authorization-configuration.ts';
import { DEFAULT_CHAIN, type ChainLink, type ChainLinks } from './authorizer-chain.ts';
import { AuthorizerMetrics } from './authorizer-metrics.ts';
import { followConfiguration, LOOK_MS } from '../webhook/followed-file.ts';
import type { ReviewEdge } from '../webhook/review-client.ts';
import { WebhookAuthorizer } from './webhook-authorizer.ts';
import { readWebhookKubeconfig } from '../webhook/webhook-kubeconfig.ts';

/** Flags as they are given; the names are kube-apiserver's. */
export interface AuthorizationFlags {
  /** Modes by commas. */
  readonly authorizationMode?: string;
  /** Path of an AuthorizationConfiguration; excludes the other flags. */
  readonly authorizationConfig?: string;
  /** Path of a kubeconfig. */
  readonly authorizationWebhookConfigFile?: string;
  readonly authorizationWebhookVersion?: string;
  readonly authorizationWebhookCacheAuthorizedTtl?: string;
  readonly authorizationWebhookCacheUnauthorizedTtl?: string;
}

const AUTHORIZED_MS = 5 * 60_000;
const UNAUTHORIZED_MS = 30_000;
/** What kube-apiserver gives a webhook that only flags describe. */
const TIMEOUT_MS = 30_000;

export interface OpenAuthorizers {
  readonly links: ChainLinks;
  readonly metrics: AuthorizerMetrics;
  /** Follows the file of the configuration no longer. */
  readonly stop: () => void;
}

/** Throws an Error whose message names the flag. */
export function openAuthorizers(
  flags: AuthorizationFlags,
  edge: ReviewEdge,
  lookMs: number = LOOK_MS,
): OpenAuthorizers {
  const metrics = new AuthorizerMetrics();
  const { authorizationConfig: file } = flags;
  if (file === undefined) {
    const entries = entriesOf(flags);
    const links = entries === null ? DEFAULT_CHAIN : linksOf(entries, edge, metrics);
    return { links: () => links, metrics, stop: () => {} };
  }
  checkAlone(flags);
  let links: readonly ChainLink[] = [];
  const take = (configuration: JsonValue): void => {
    links = linksOf(readAuthorizationConfiguration(configuration), edge, metrics);
  };
  const flag = 'authorization-config';
  const stop = followConfiguration({ flag, file, lookMs, metrics: metrics.reloads, edge, take });
  return { links: () => links, metrics, stop };
}

function linksOf(
  entries: readonly ModeEntry[],
  edge: ReviewEdge,
  metrics: AuthorizerMetrics,
): readonly ChainLink[] {
  return entries.map(({ mode, name, webhook }): ChainLink => {
    if (mode !== 'Webhook') return { name, link: mode };
    if (webhook === null) return 'AlwaysDeny';
    const options = { ...webhook, target: targetOf(webhook) };
    const link = new WebhookAuthorizer(options, edge, metrics, () => performance.now()).authorize;
    return { name, link };
  });
}

function entriesOf(flags: AuthorizationFlags): ModeEntry[] | null {
  const { authorizationMode: modes } = flags;
  return modes === undefined ? null : entriesOfModes(modes, flags);
}

function checkAlone(flags: AuthorizationFlags): void {
  if (flags.authorizationMode === undefined && flags.authorizationWebhookConfigFile === undefined) {
    return;
  }
  throw new Error(
    '--authorization-config can not be specified when --authorization-mode or ' +
      '--authorization-webhook-* flags are defined',
  );
}

function entriesOfModes(text: string, flags: AuthorizationFlags): ModeEntry[] {
  const seen = new Set<string>();
  return text.split(',').map((name) => {
    const mode = MODES.find((one) => one === name);
    if (mode === undefined) {
      throw new Error(
        `--authorization-mode: authorization-mode "${name}" is not a valid mode; ` +
          `it is one of ${MODES.join(', ')}`,
      );
    }
    if (seen.has(mode)) throw new Error(`--authorization-mode: ${mode} is named twice`);
    seen.add(mode);
    // upstream's names for what only flags describe
    if (mode === 'Webhook') return { mode, name: 'default', webhook: entryOfFlags(flags) };
    return { mode, name: mode.toLowerCase(), webhook: null };
  });
}

function entryOfFlags(flags: AuthorizationFlags): WebhookEntry {
  const file = flags.authorizationWebhookConfigFile;
  if (file === undefined) {
    throw new Error(
      "--authorization-mode: authorization-mode Webhook's authorization config file not passed; " +
        'give --authorization-webhook-config-file',
    );
  }
  const version = flags.authorizationWebhookVersion ?? 'v1beta1';
  if (version !== 'v1' && version !== 'v1beta1') {
    throw new Error(`--authorization-webhook-version: ${version} is neither v1 nor v1beta1`);
  }
  const ttl = (flag: string, given: string | undefined, fallbackMs: number): number =>
    parseDuration(flag, given, fallbackMs);
  return {
    name: 'default',
    version,
    timeoutMs: TIMEOUT_MS,
    authorizedMs: ttl(
      'authorization-webhook-cache-authorized-ttl',
      flags.authorizationWebhookCacheAuthorizedTtl,
      AUTHORIZED_MS,
    ),
    unauthorizedMs: ttl(
      'authorization-webhook-cache-unauthorized-ttl',
      flags.authorizationWebhookCacheUnauthorizedTtl,
      UNAUTHORIZED_MS,
    ),
    deniesOnFailure: false,
    kubeconfigFile: file,
    conditions: [],
  };
}

function targetOf({
  name,
  kubeconfigFile,
  timeoutMs,
}: WebhookEntry): ReturnType<typeof readWebhookKubeconfig> {
  if (kubeconfigFile === '') {
    throw new Error(
      `authorizer ${name}: InClusterConfig is of servers that run in a pod; name a kubeconfig`,
    );
  }
  try {
    const read = (path: string): string => readFileSync(path, 'utf8');
    return readWebhookKubeconfig(parse(read(kubeconfigFile)) as JsonValue, read, timeoutMs);
  } catch (error) {
    const message = messageOf(error);
    throw new Error(`authorizer ${name}: ${kubeconfigFile}: ${message}`, { cause: error });
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
