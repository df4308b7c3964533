/** etcd's flags of `megaplane store` for serving, TLS and users. */
import { ownMember } from '@megaplane/base/members';
import { type Command, InvalidArgumentError } from 'commander';
import { durationOption, flagValue, oneOf, wholeNumber, words } from '../parsers/flag-parsers.ts';

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
  readonly hostWhitelist: readonly string[];
  readonly enableGrpcGateway?: boolean;
  readonly listenClientHttpUrls?: string;
  readonly metrics: string;
  readonly maxConcurrentStreams: number;
  readonly maxConnections: number;
  readonly grpcKeepaliveInterval: number;
  readonly grpcKeepaliveTimeout: number;
  readonly authToken: string;
  readonly authTokenTtl: number;
  readonly bcryptCost: number;
}

/** Adds the flags for serving; `described` has added etcd's others. */
export function addServingFlags(command: Command): Command {
  return command
    .option('--cors <origins>', 'web pages that may use the JSON gateway; * = all', words, [])
    .option('--host-whitelist <hosts>', 'hosts that plain HTTP may be asked for', words, ['*'])
    .option('--enable-grpc-gateway [on]', 'the JSON gateway (default true)', flagValue)
    .option(
      '--listen-client-http-urls <urls>',
      'where HTTP is served, then --listen-client-urls serve gRPC alone',
    )
    .option(
      '--metrics <detail>',
      'basic, or extensive with the time of every call',
      detail,
      'basic',
    )
    .option('--max-concurrent-streams <n>', 'of a connection', wholeNumber(1, 2 ** 32 - 1), 1000)
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

const PREFIX = 'ETCD_';

/** Each flag may come as `ETCD_FLAG_NAME` from the environment; as in etcd, empty is not given. */
export function readEnvironment(
  command: Command,
  environment: Readonly<Record<string, string | undefined>>,
): Command {
  for (const option of command.options) {
    const name = option.long?.slice(2).replaceAll('-', '_').toUpperCase();
    if (name === undefined || name === 'HELP' || name === 'VERSION') continue;
    if (ownMember(environment, PREFIX + name) !== '') option.env(`${PREFIX}${name}`);
  }
  return command;
}

/**
 * As in etcd: a variable whose flag is on the command line, too, is a conflict, and one that no
 * flag has is told of.
 */
export function environmentFaults(
  command: Command,
  environment: Readonly<Record<string, string | undefined>>,
): { readonly conflict: string | null; readonly unknown: readonly string[] } {
  const unknown: string[] = [];
  let conflict: string | null = null;
  for (const variable of Object.keys(environment).sort()) {
    if (!variable.startsWith(PREFIX)) continue;
    const flag = `--${variable.slice(PREFIX.length).replaceAll('_', '-').toLowerCase()}`;
    const option = command.options.find(({ long }) => long === flag);
    if (option === undefined || flag === '--version') unknown.push(variable);
    else if (command.getOptionValueSource(option.attributeName()) === 'cli') {
      conflict ??= `${flag}: ${variable} is in the environment, too; unset it or omit the flag`;
    }
  }
  return { conflict, unknown };
}

/** Go takes a flag of one dash for the same; commander would read it as single letters. */
export function withTwoDashes(args: readonly string[]): string[] {
  return args.map((word) => (/^-[a-z][a-z\d]*-?[a-z\d]/.test(word) ? `-${word}` : word));
}
