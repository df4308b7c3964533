/**
 * Flags of kube-apiserver 1.36 beyond those that `commands/apiserver.ts` describes: how it serves,
 * and those that have no effect here. The latter are taken and named in one line of the log, so
 * that manifests and test suites keep working. Refused are those whose meaning would be missed:
 * who gives an access policy, or a signer of tokens, must not run without it.
 */
import { type Command, InvalidArgumentError } from 'commander';
import { GIT_VERSION } from '@megaplane/apiserver/release';
import { addForeignFlags, flagNames, foreignFlags, foreignValue } from './foreign-flags.ts';
import { addKlogFlags } from '../service/logging.ts';
import { durationMs, flagValue, path, wholeNumber, words } from '../parsers/flag-parsers.ts';

/** Flags of kube-apiserver that have no effect. */
const UNUSED: readonly string[] = flagNames(`
  admission-control aggregator-reject-forwarding-redirect allow-metric-labels
  allow-metric-labels-manifest apiserver-count authorization-policy-file contention-profiling
  coordinated-leadership-lease-duration coordinated-leadership-renew-deadline
  coordinated-leadership-retry-period debug-socket-path
  default-watch-cache-size delete-collection-workers disabled-metrics
  emulated-version emulation-forward-compatible
  enable-aggregator-routing enable-garbage-collector enable-logs-handler
  etcd-count-metric-poll-period etcd-db-metric-poll-interval etcd-healthcheck-timeout
  etcd-readycheck-timeout kubelet-read-only-port kubelet-timeout kubernetes-service-node-port
  lease-reuse-duration-seconds livez-grace-period log-flush-frequency log-json-info-buffer-size
  log-json-split-stream log-text-info-buffer-size log-text-split-stream
  max-connection-bytes-per-sec min-compatibility-version peer-advertise-ip
  peer-advertise-port peer-ca-file permit-address-sharing permit-port-sharing
  runtime-config-emulation-forward-compatible
  service-account-signing-endpoint show-hidden-metrics-for-version shutdown-send-retry-after
  shutdown-watch-termination-grace-period storage-backend storage-initialization-timeout
  tracing-config-file vmodule watch-cache watch-cache-sizes
`);

/** `VersionTLS12` as `node:tls` calls it. Older ones than 1.2 are not spoken. */
function tlsVersion(text: string): string {
  const found = /^VersionTLS1([0-3])$/.exec(text);
  if (found === null) {
    const all = 'VersionTLS10, VersionTLS11, VersionTLS12, VersionTLS13';
    throw new InvalidArgumentError(`one of ${all} is needed.`);
  }
  return found[1] === '3' ? 'TLSv1.3' : 'TLSv1.2';
}

/** Ids of Go's crypto/tls by OpenSSL's names. */
const CURVES: ReadonlyMap<string, string> = new Map([
  ['23', 'P-256'],
  ['24', 'P-384'],
  ['25', 'P-521'],
  ['29', 'X25519'],
  ['4588', 'X25519MLKEM768'],
]);

function curves(text: string): readonly string[] {
  return words(text).map((id) => {
    const name = CURVES.get(id.trim());
    if (name !== undefined) return name;
    throw new InvalidArgumentError(`${id} is none of the curves ${[...CURVES.keys()].join(', ')}.`);
  });
}

/** Each pair of files is one value of a flag that is repeated. */
function pair(text: string, previous: readonly string[] | undefined): readonly string[] {
  const [files = ''] = text.split(':');
  if (!/^[^,]+,[^,]+$/.test(files)) {
    throw new InvalidArgumentError('a certificate and a key are needed: FILE,FILE[:NAME,...].');
  }
  return [...(previous ?? []), text];
}

const HOUR_MS = 3_600_000;

/** `--service-account-max-token-expiration`, within upstream's bounds; 0 for none. */
function tokenLife(text: string): number {
  const value = durationMs(text);
  if (value === 0 || (value >= HOUR_MS && value <= 2 ** 32 * 1000)) return value;
  throw new InvalidArgumentError('1h or longer is needed, and no more than 2^32 seconds.');
}

/** Adds them all. */
export function addServingFlags(command: Command): Command {
  command
    .optionsGroup('Serving as kube-apiserver does:')
    .option('--cert-dir <dir>', 'apiserver.crt and apiserver.key, unless files are named', path)
    .option('--tls-min-version <version>', 'VersionTLS12 or VersionTLS13', tlsVersion)
    .option('--tls-cipher-suites <names>', "suites of TLS 1.2 by Go's names", words)
    .option('--tls-curve-preferences <ids>', "curves by Go's numbers, such as 29,23", curves)
    .option('--tls-sni-cert-key <pair>', 'FILE,FILE[:NAME,...] for names; may be repeated', pair)
    .option('--http2-max-streams-per-connection <n>', 'at once (1000)', wholeNumber(0, 2 ** 31 - 1))
    .option('--external-hostname <host>', 'what this server is called where it tells of itself')
    .option('--service-node-port-range <range>', 'of Services (30000-32767)')
    .option('--service-account-jwks-uri <url>', 'where keys of tokens are told to be')
    .option('--service-account-max-token-expiration <duration>', 'longer is shortened', tokenLife)
    .option('--service-account-extend-token-expiration [bool]', "pods' tokens (true)", flagValue)
    .option('--allow-privileged [bool]', 'privileged containers (true)', flagValue)
    .option(
      '--min-request-timeout <seconds>',
      'of watches (1800); 0 = none',
      wholeNumber(0, 2 ** 31 - 1),
    )
    .option('--disable-http2-serving [bool]', 'HTTP/1.1 alone (false)', flagValue)
    .option('--service-account-lookup [bool]', 'tokens of Secrets end with them (true)', flagValue)
    .option('--cors-allowed-origins <patterns>', 'web pages that may read answers', words)
    .option('--strict-transport-security-directives <words>', 'such as max-age=31536000', words)
    .option('--egress-selector-config-file <file>', 'ways out, all of them Direct', path)
    .option('--profiling [bool]', 'serve /debug/pprof (true)', flagValue)
    .option('--version [form]', 'prints the version of Kubernetes that it stands in for');
  addKlogFlags(command);
  return addForeignFlags(command, UNUSED);
}

/** Those that were given and have no effect, for one line of the log. */
export function unusedApiserverFlags(command: Command): string[] {
  return foreignFlags(command, UNUSED).filter((name) => refusalOf(command, name) === null);
}

const OFF = new Set<unknown>(['', 'false', '0']);

/** What would be missed if it were only taken. */
const REFUSED: ReadonlyMap<string, string> = new Map([
  ['authorization-policy-file', 'ABAC is not offered; use --authorization-mode Node,RBAC'],
  ['service-account-signing-endpoint', 'tokens are signed here; use --service-account-key-file'],
  ['admission-control', 'use --enable-admission-plugins or --disable-admission-plugins'],
]);

function refusalOf(command: Command, name: string): string | null {
  const value = foreignValue(command, name);
  if (value === undefined || OFF.has(value)) return null;
  if (name === 'storage-backend' && value !== 'etcd3') {
    return `--${name}: ${value as string} is not offered; the only one is etcd3`;
  }
  const advice = REFUSED.get(name);
  return advice === undefined ? null : `--${name}: ${advice}`;
}

/** Why the server must not start with what was given; null when it may. */
export function refusedApiserverFlag(command: Command): string | null {
  for (const name of foreignFlags(command, UNUSED)) {
    const refusal = refusalOf(command, name);
    if (refusal !== null) return refusal;
  }
  return null;
}

/** What `--version` prints; null where it was not asked for. */
export function versionText(version: string | true | undefined): string | null {
  if (version === undefined || version === 'false') return null;
  if (version === true || version === 'true' || version === 'raw')
    return `Kubernetes ${GIT_VERSION}\n`;
  throw new Error(`--version: ${version} is none of true, false and raw`);
}
