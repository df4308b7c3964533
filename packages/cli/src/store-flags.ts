/** etcd's flags of `megaplane store` for serving, TLS and users, and those without a use here. */
import { type Command, InvalidArgumentError, Option } from 'commander';
import { durationOption, flagValue, oneOf, wholeNumber, words } from './usage.ts';

/** What these flags come to. */
export interface ServingFlags {
  readonly certFile?: string;
  readonly keyFile?: string;
  readonly trustedCaFile?: string;
  readonly clientCertAuth?: boolean;
  readonly clientCrlFile?: string;
  readonly clientCertAllowedCn?: readonly string[];
  readonly clientCertAllowedHostname?: readonly string[];
  readonly tlsMinVersion?: string;
  readonly tlsMaxVersion?: string;
  readonly cipherSuites?: readonly string[];
  readonly autoTls?: boolean;
  readonly selfSignedCertValidity: number;
  readonly cors: readonly string[];
  readonly metrics: string;
  readonly maxConcurrentStreams: number;
  readonly maxConnections: number;
  readonly grpcKeepaliveInterval: number;
  readonly grpcKeepaliveTimeout: number;
  readonly authToken: string;
  readonly authTokenTtl: number;
  readonly bcryptCost: number;
}

/** Flags of a cluster with peers, of raft and of bbolt: taken, so that manifests keep working. */
const UNUSED: readonly string[] = [
  ...['listen-peer-urls', 'initial-advertise-peer-urls', 'initial-cluster'],
  ...['initial-cluster-state', 'initial-cluster-token', 'initial-corrupt-check'],
  ...['advertise-peer-urls', 'peer-cert-file', 'peer-key-file', 'peer-trusted-ca-file'],
  ...['peer-client-cert-auth', 'peer-crl-file', 'peer-cert-allowed-cn'],
  ...['peer-cert-allowed-hostname', 'peer-auto-tls', 'peer-client-cert-file'],
  ...['peer-client-key-file', 'client-cert-file', 'client-key-file', 'snapshot-count'],
  ...['heartbeat-interval', 'election-timeout', 'pre-vote', 'strict-reconfig-check'],
  ...['discovery', 'discovery-endpoints', 'discovery-token', 'discovery-srv', 'discovery-proxy'],
  ...['discovery-fallback', 'wal-dir', 'max-snapshots', 'max-wals', 'backend-batch-interval'],
  ...['backend-batch-limit', 'backend-bbolt-freelist-type', 'grpc-keepalive-min-time'],
  ...['host-whitelist', 'feature-gates', 'logger', 'log-outputs', 'enable-pprof', 'enable-v2'],
  ...['warning-apply-duration', 'warning-unary-request-duration', 'compact-hash-check-enabled'],
  ...['compact-hash-check-time', 'corrupt-check-time', 'downgrade-check-time'],
  ...['experimental-initial-corrupt-check', 'experimental-corrupt-check-time'],
  ...['experimental-compaction-batch-limit', 'experimental-compact-hash-check-enabled'],
  ...['experimental-enable-lease-checkpoint', 'experimental-warning-apply-duration'],
  ...['compaction-batch-limit', 'compaction-sleep-interval', 'enable-log-rotation'],
  ...['force-new-cluster', 'experimental-txn-mode-write-with-shared-buffer'],
  ...['socket-reuse-port', 'socket-reuse-address', 'listen-client-http-urls'],
];

/** Adds the flags for serving; `described` has added etcd's others. */
export function addServingFlags(command: Command): Command {
  return command
    .option('--cors <origins>', 'web pages that may use the JSON gateway; * = all', words, [])
    .option(
      '--metrics <detail>',
      'basic, or extensive with the time of every call',
      detail,
      'basic',
    )
    .option('--max-concurrent-streams <n>', 'of a connection', wholeNumber(1, 1e6), 1000)
    .option('--max-connections <n>', 'of an address (+)', wholeNumber(1, 1e6), 100_000)
    .addOption(
      durationOption('--grpc-keepalive-interval <duration>', 'quiet before a ping', 7_200_000),
    )
    .addOption(durationOption('--grpc-keepalive-timeout <duration>', 'for its answer', 20_000))
    .optionsGroup('TLS and users:')
    .option('--cert-file <file>', 'serving certificate, read again when it changes')
    .option('--key-file <file>', 'its key')
    .option('--trusted-ca-file <file>', 'clients must show a certificate of this authority')
    .option('--client-cert-auth [on]', 'the same, and needs --trusted-ca-file', flagValue)
    .option('--client-crl-file <file>', 'certificates that are no longer good')
    .option('--client-cert-allowed-cn <names>', 'common names that may come in (+)', words)
    .option('--client-cert-allowed-hostname <hosts>', 'hosts that may come in', words)
    .option('--tls-min-version <version>', 'TLS1.2 or TLS1.3 (default TLS1.2)', tlsVersion)
    .option('--tls-max-version <version>', 'TLS1.2 or TLS1.3', tlsVersion)
    .option('--cipher-suites <names>', "suites of TLS 1.2 by Go's names", words)
    .option('--auto-tls [on]', 'serve with a certificate made at the start', flagValue)
    .option('--self-signed-cert-validity <years>', 'of that one', wholeNumber(1, 100), 1)
    .option(
      '--auth-token <kind>',
      'simple, or jwt,pub-key=F,priv-key=F,sign-method=M,ttl=D',
      'simple',
    )
    .option('--auth-token-ttl <seconds>', 'of a simple token', wholeNumber(1, 1e9), 300)
    .option('--bcrypt-cost <cost>', 'of passwords', wholeNumber(4, 31), 10);
}

function detail(text: string): string {
  return oneOf(['basic', 'extensive'])(text);
}

/** Node's name of a version; an empty one is etcd's "automatic". */
function tlsVersion(text: string): string | undefined {
  if (text === '') return undefined;
  if (text === 'TLS1.2' || text === 'TLS1.3') return text.replace('TLS', 'TLSv');
  if (/^TLS1\.[01]$/.test(text)) throw new InvalidArgumentError(`${text} is not safe any more.`);
  throw new InvalidArgumentError('TLS1.2 or TLS1.3 is needed.');
}

/** Adds, hidden, what manifests of etcd name and a store of one member has no use for. */
export function addUnusedFlags(command: Command): Command {
  for (const name of UNUSED) command.addOption(new Option(`--${name} [value]`).hideHelp());
  return command;
}

/** Which of them were given, for one warning. */
export function unusedFlags(command: Command): string[] {
  return UNUSED.filter((name) => {
    const key = name.replaceAll(/-(\w)/g, (_all, letter: string) => letter.toUpperCase());
    return command.getOptionValue(key) !== undefined;
  });
}

/** Each flag may come as `ETCD_FLAG_NAME` from the environment, as in etcd. */
export function readEnvironment(command: Command): Command {
  for (const option of command.options) {
    const name = option.long?.slice(2).replaceAll('-', '_').toUpperCase();
    if (name !== undefined && name !== 'HELP' && name !== 'VERSION') option.env(`ETCD_${name}`);
  }
  return command;
}
