/** Flags of the audit log, those of `kube-apiserver`. */
import type { Command } from 'commander';
import type { AuditFlags } from '@megaplane/apiserver/operations/audit-flags';
import { flagValue, wholeNumber } from '../parsers/flag-parsers.ts';

const SIZE_MAX = 2 ** 40;

export function addAuditOptions(command: Command): Command {
  command
    .optionsGroup('Audit log:')
    .option('--audit-policy-file <file>', 'which requests are written down, and how much of them')
    .option('--audit-log-path <file>', 'where; - is standard output')
    .option('--audit-log-format <format>', 'json, or legacy: a line of text for each event (json)')
    .option('--audit-log-maxsize <megabytes>', 'of one file (100); 0 = any', wholeNumber(0, 1e6))
    .option('--audit-log-maxbackup <count>', 'old files kept (100); 0 = all', wholeNumber(0, 1e6))
    .option('--audit-log-maxage <days>', 'of old files (366); 0 = any', wholeNumber(0, 1e6))
    .option('--audit-log-compress [bool]', 'whether full files are packed', flagValue)
    .option('--audit-webhook-config-file <file>', 'kubeconfig of a server that is sent the events')
    .option('--audit-webhook-initial-backoff <duration>', 'before it is sent them again (10s)')
    .option('--audit-webhook-batch-initial-backoff <duration>', 'the same, by its old name');
  addPluginOptions(command, 'log', ['blocking', '1', '0s', 'false', '0', '0']);
  addPluginOptions(command, 'webhook', ['batch', '400', '30s', 'true', '10', '15']);
  return command;
}

/** What both have, with defaults of their own. */
function addPluginOptions(command: Command, plugin: string, defaults: readonly string[]): void {
  const [mode, size, wait, throttles, qps, burst] = defaults;
  const name = `--audit-${plugin}`;
  const count = wholeNumber(0, SIZE_MAX);
  command
    .option(`${name}-mode <mode>`, `batch, blocking or blocking-strict (${mode})`)
    .option(`${name}-version <version>`, 'of the events (audit.k8s.io/v1)')
    .option(`${name}-batch-buffer-size <count>`, 'events that wait, of mode batch (10000)', count)
    .option(`${name}-batch-max-size <count>`, `events sent at once (${size})`, count)
    .option(`${name}-batch-max-wait <duration>`, `until fewer are sent (${wait})`)
    .option(`${name}-batch-throttle-enable [bool]`, `bound their rate (${throttles})`, flagValue)
    .option(`${name}-batch-throttle-qps <rate>`, `batches a second (${qps})`)
    .option(`${name}-batch-throttle-burst <count>`, `batches at once (${burst})`, count)
    .option(`${name}-truncate-enabled [bool]`, 'whether large events are cut (false)', flagValue)
    .option(`${name}-truncate-max-event-size <bytes>`, 'of one event (102400)', count)
    .option(`${name}-truncate-max-batch-size <bytes>`, 'of one batch (10485760)', count);
}

/** Those of the flags that were given. */
export function auditFlagsOf(flags: AuditFlags): AuditFlags {
  return Object.fromEntries(
    Object.entries(flags).filter(
      ([name, value]) => name.startsWith('audit') && value !== undefined,
    ),
  );
}
