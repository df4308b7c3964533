// shell: files, timers
/**
 * Flags of the audit log, under upstream's names and with upstream's defaults
 * (apiserver/pkg/server/options/audit.go), and what they come to.
 */
import { afterMs } from '@megaplane/base/deferred';
import { readFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { parse } from 'yaml';
import type { JsonValue } from '@megaplane/machinery/json-value';
import type { WebhookCaller } from '../webhook/webhook-call.ts';
import { readWebhookKubeconfig } from '../webhook/webhook-kubeconfig.ts';
import { parseDuration } from '../storage/etcd3/etcd-options.ts';
import type { MetricsRegistry } from '../metrics/metrics-registry.ts';
import { Audit } from './audit.ts';
import {
  AuditFaults,
  BufferedBackend,
  forgiving,
  truncating,
  unitedBackends,
  type AuditBackend,
  type AuditTimers,
  type BatchOptions,
} from './audit-backends.ts';
import { AuditLog } from './audit-log.ts';
import { readPolicy, type AuditPolicy } from './audit-policy.ts';
import { AuditWebhook } from './audit-webhook.ts';

const MODES = ['batch', 'blocking', 'blocking-strict'] as const;
const FORMATS = ['legacy', 'json'] as const;
const VERSION = 'audit.k8s.io/v1';
/** How long a stop waits for events that are on their way. */
const CLOSE_MS = 5000;

type Plugin = 'Log' | 'Webhook';

/** Texts and numbers as given on the command line. */
type PluginFlags<P extends Plugin> = {
  readonly [K in `audit${P}${'Mode' | 'BatchMaxWait' | 'BatchThrottleQps' | 'Version'}`]?: string;
} & {
  readonly [
    K in `audit${P}${
      | 'BatchBufferSize'
      | 'BatchMaxSize'
      | 'BatchThrottleBurst'
      | 'TruncateMaxBatchSize'
      | 'TruncateMaxEventSize'}`
  ]?: number;
} & { readonly [K in `audit${P}${'BatchThrottleEnable' | 'TruncateEnabled'}`]?: boolean };

interface OwnFlags {
  readonly auditPolicyFile?: string;
  /** `-` is standard output. */
  readonly auditLogPath?: string;
  readonly auditLogFormat?: string;
  /** Megabytes. */
  readonly auditLogMaxsize?: number;
  readonly auditLogMaxbackup?: number;
  /** Days. */
  readonly auditLogMaxage?: number;
  /** Files that are put aside are packed by gzip. */
  readonly auditLogCompress?: boolean;
  readonly auditWebhookConfigFile?: string;
  readonly auditWebhookInitialBackoff?: string;
  readonly auditWebhookBatchInitialBackoff?: string;
}

export type AuditFlags = OwnFlags & PluginFlags<'Log'> & PluginFlags<'Webhook'>;

/** What stands between the requests and where their events go. */
interface Plumbing {
  readonly mode: (typeof MODES)[number];
  readonly batch: BatchOptions;
  /** Null: events may be of any size. */
  readonly bounds: { readonly eventBytesMax: number; readonly batchBytesMax: number } | null;
}

export interface AuditService {
  readonly auditor: Audit;
  addTo(metrics: MetricsRegistry): void;
  close(): Promise<void>;
}

export interface AuditEdge {
  readonly caller: WebhookCaller;
  readonly log: (level: 'error' | 'warn', message: string) => void;
}

const TIMERS: AuditTimers = {
  nowMs: () => performance.now(),
  after: (ms, work) => void afterMs(ms, work).unref(),
  random: () => Math.random(),
};

/** Null where nothing is written down. Throws an Error that names the flag. */
export function openAudit(flags: AuditFlags, edge: AuditEdge): AuditService | null {
  const { auditLogPath: path = '', auditWebhookConfigFile: file = '' } = flags;
  const policy = openPolicy(flags);
  const faults = new AuditFaults((message) => edge.log('error', message));
  const log = path === '' ? null : logOf(flags, path, policy !== null, faults);
  const webhook = file === '' ? null : webhookOf(flags, file, edge, faults);
  if (policy === null) {
    if (path === '' && file === '') return null;
    edge.log('warn', 'no --audit-policy-file: nothing is written to the audit log');
    return null;
  }
  const backends = [log, webhook].filter((one) => one !== null);
  if (backends.length === 0) return null;
  const backend = unitedBackends(backends);
  const auditor = new Audit(
    policy,
    backend,
    () => Date.now(),
    () => performance.now(),
  );
  return {
    auditor,
    addTo: (metrics) => {
      auditor.addTo(metrics);
      metrics.addSource((lines) => faults.print(lines));
    },
    close: () =>
      Promise.race([
        backend.close(),
        new Promise<void>((done) => void afterMs(CLOSE_MS, done).unref()),
      ]),
  };
}

function openPolicy({ auditPolicyFile }: AuditFlags): AuditPolicy | null {
  if (auditPolicyFile === undefined) return null;
  try {
    return readPolicy(parse(readFileSync(auditPolicyFile, 'utf8')) as JsonValue);
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new Error(`--audit-policy-file: ${auditPolicyFile}: ${why}`, { cause: error });
  }
}

function logOf(
  flags: AuditFlags,
  path: string,
  isOpened: boolean,
  faults: AuditFaults,
): AuditBackend | null {
  const plumbing = plumbingOf(flags, 'Log');
  const { auditLogFormat: format = 'json' } = flags;
  if (!FORMATS.some((one) => one === format)) {
    const allowed = JSON.stringify(FORMATS.join(','));
    throw new Error(`invalid audit log format ${format}, allowed formats are ${allowed}`);
  }
  if (!isOpened) return null;
  const log = new AuditLog(
    {
      path,
      sizeMegabytesMax: flags.auditLogMaxsize,
      backupsMax: flags.auditLogMaxbackup,
      ageDaysMax: flags.auditLogMaxage,
      isCompressed: flags.auditLogCompress,
      isLegacy: format === 'legacy',
      isStrict: plumbing.mode === 'blocking-strict',
    },
    faults,
  );
  return plumbed(log, plumbing, faults);
}

function webhookOf(
  flags: AuditFlags,
  file: string,
  { caller }: AuditEdge,
  faults: AuditFaults,
): AuditBackend {
  const plumbing = plumbingOf(flags, 'Webhook');
  const { auditWebhookInitialBackoff, auditWebhookBatchInitialBackoff } = flags;
  const backoff = auditWebhookInitialBackoff ?? auditWebhookBatchInitialBackoff;
  const initialDelayMs = parseDuration('audit-webhook-initial-backoff', backoff, 10_000);
  try {
    const read = (name: string): string => readFileSync(resolve(dirname(file), name), 'utf8');
    const target = readWebhookKubeconfig(parse(readFileSync(file, 'utf8')) as JsonValue, read);
    const webhook = new AuditWebhook({ target, caller, initialDelayMs }, TIMERS, faults);
    return plumbed(webhook, plumbing, faults);
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new Error(`--audit-webhook-config-file: ${file}: ${why}`, { cause: error });
  }
}

function plumbed(backend: AuditBackend, plumbing: Plumbing, faults: AuditFaults): AuditBackend {
  const { mode, batch, bounds } = plumbing;
  let made = backend;
  if (mode === 'batch') made = new BufferedBackend(backend, batch, TIMERS, faults);
  else if (mode === 'blocking') made = forgiving(backend);
  return bounds === null ? made : truncating(made, bounds, faults);
}

/** What one plugin's flags say. Throws upstream's words for what cannot be. */
function plumbingOf(flags: AuditFlags, plugin: Plugin): Plumbing {
  const isWebhook = plugin === 'Webhook';
  const own = flags as Readonly<Record<string, string | number | boolean | undefined>>;
  const of = (name: string): string | number | boolean | undefined => own[`audit${plugin}${name}`];
  const number = (name: string, fallback: number): number => Number(of(name) ?? fallback);
  const name = plugin.toLowerCase();
  const version = of('Version') ?? VERSION;
  if (version !== VERSION) {
    throw new Error(`invalid group version, allowed versions are ["${VERSION}"]`);
  }
  const text = String(of('Mode') ?? (isWebhook ? 'batch' : 'blocking'));
  const mode = MODES.find((one) => one === text);
  if (mode === undefined) {
    const allowed = JSON.stringify(MODES.join(','));
    throw new Error(`invalid audit ${name} mode ${text}, allowed modes are ${allowed}`);
  }
  const bufferSize = number('BatchBufferSize', 10_000);
  const batchSizeMax = number('BatchMaxSize', isWebhook ? 400 : 1);
  const isThrottled = (of('BatchThrottleEnable') ?? isWebhook) === true;
  const perSecond = number('BatchThrottleQps', isWebhook ? 10 : 0);
  const burst = number('BatchThrottleBurst', isWebhook ? 15 : 0);
  const positive = (what: string, value: number): void => {
    if (value > 0) return;
    throw new Error(`invalid audit ${what} ${value}, must be a positive number`);
  };
  if (mode === 'batch') {
    positive(`batch ${name} buffer size`, bufferSize);
    positive(`batch ${name} max batch size`, batchSizeMax);
    if (isThrottled) positive(`batch ${name} throttle QPS`, perSecond);
    if (isThrottled) positive(`batch ${name} throttle burst`, burst);
  }
  const wait = of('BatchMaxWait');
  const fallbackMs = isWebhook ? 30_000 : 0;
  const waitText = wait === undefined ? undefined : String(wait);
  const eventBytesMax = number('TruncateMaxEventSize', 100 * 1024);
  const batchBytesMax = number('TruncateMaxBatchSize', 10 * 1024 * 1024);
  positive(`truncate ${name} max event size`, eventBytesMax);
  if (batchBytesMax < eventBytesMax) {
    throw new Error(
      `invalid audit truncate ${name} max batch size ${batchBytesMax}, ` +
        `must be greater than max event size (${eventBytesMax})`,
    );
  }
  return {
    mode,
    batch: {
      bufferSize,
      batchSizeMax,
      waitMsMax: parseDuration(`audit-${name}-batch-max-wait`, waitText, fallbackMs),
      throttle: isThrottled ? { perSecond, burst } : null,
    },
    bounds: of('TruncateEnabled') === true ? { eventBytesMax, batchBytesMax } : null,
  };
}
