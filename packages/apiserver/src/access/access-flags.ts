// shell: reads configuration files
/** `--authorization-*`: from flags and files to the authorizers of a server. */
import { readFileSync } from 'node:fs';
import { parse } from 'yaml';
import type { JsonValue } from '@megaplane/machinery/json-value';
import { parseDuration } from '../etcd/etcd-options.ts';
import {
  MODES,
  readAuthorizationConfiguration,
  type ModeEntry,
  type WebhookEntry,
} from './authorization-configuration.ts';
import { DEFAULT_CHAIN, type ChainLink } from './authorizer-chain.ts';
import { WebhookAuthorizer, type WebhookAuthorizerEdge } from './webhook-authorizer.ts';
import { readWebhookKubeconfig } from './webhook-kubeconfig.ts';

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
  readonly links: readonly ChainLink[];
  readonly webhooks: readonly WebhookAuthorizer[];
}

/** Throws an Error whose message names the flag. */
export function openAuthorizers(
  flags: AuthorizationFlags,
  edge: WebhookAuthorizerEdge,
): OpenAuthorizers {
  const entries = entriesOf(flags);
  if (entries === null) return { links: DEFAULT_CHAIN, webhooks: [] };
  const webhooks: WebhookAuthorizer[] = [];
  const links = entries.map(({ mode, webhook }): ChainLink => {
    if (mode !== 'Webhook' || webhook === null) return mode === 'Webhook' ? 'AlwaysDeny' : mode;
    const made = new WebhookAuthorizer({ ...webhook, target: targetOf(webhook) }, edge);
    webhooks.push(made);
    return made.authorize;
  });
  return { links, webhooks };
}

function entriesOf(flags: AuthorizationFlags): ModeEntry[] | null {
  const { authorizationConfig: file, authorizationMode: modes } = flags;
  if (file === undefined) return modes === undefined ? null : entriesOfModes(modes, flags);
  if (modes !== undefined || flags.authorizationWebhookConfigFile !== undefined) {
    throw new Error(
      '--authorization-config can not be specified when --authorization-mode or ' +
        '--authorization-webhook-* flags are defined',
    );
  }
  try {
    return readAuthorizationConfiguration(parse(readFileSync(file, 'utf8')) as JsonValue);
  } catch (error) {
    throw new Error(`--authorization-config ${file}: ${messageOf(error)}`, { cause: error });
  }
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
    return { mode, webhook: mode === 'Webhook' ? entryOfFlags(flags) : null };
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
}: WebhookEntry): ReturnType<typeof readWebhookKubeconfig> {
  if (kubeconfigFile === '') {
    throw new Error(
      `authorizer ${name}: InClusterConfig is of servers that run in a pod; name a kubeconfig`,
    );
  }
  try {
    const read = (path: string): string => readFileSync(path, 'utf8');
    return readWebhookKubeconfig(parse(read(kubeconfigFile)) as JsonValue, read);
  } catch (error) {
    const message = messageOf(error);
    throw new Error(`authorizer ${name}: ${kubeconfigFile}: ${message}`, { cause: error });
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
