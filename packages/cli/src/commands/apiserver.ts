// shell: standard output
/** `megaplane apiserver`: store and API server in one process. */
import { Command } from 'commander';
import { type ApiserverFlags, DATA_DIR, optionsOf } from '../flags/apiserver-options.ts';
import { addAuditOptions } from '../flags/audit-options.ts';
import { featureGatesOption, gatesWarning } from '../flags/feature-gates-flag.ts';
import {
  addServingFlags,
  refusedApiserverFlag,
  unusedApiserverFlags,
  versionText,
} from '../flags/apiserver-flags.ts';
import { addJournalAccess, addLeaderLease } from '../flags/journal-flags.ts';
import { foreignWarning } from '../flags/foreign-flags.ts';
import { addLogOptions, adjustableLogger, withKlogFlags } from '../service/logging.ts';
import { serve } from '../service/service.ts';
import {
  durabilityModes,
  flagValue,
  flagValues,
  historySizes,
  path,
  sizeBytes,
  urls,
  wholeNumber,
} from '../parsers/flag-parsers.ts';

/** A flag that may be given several times is one list. */
function joined(text: string, previous: string | undefined): string {
  return previous === undefined ? text : `${previous},${text}`;
}

function addDataOptions(command: Command): Command {
  command
    .optionsGroup('Data:')
    .option(
      '--data-dir <dir>',
      `keys, kubeconfigs and the embedded store (${DATA_DIR}, or below --cert-dir)`,
      path,
    )
    .option(
      '--durability <modes>',
      'none, buffered or fsync, or by resource: leases.coordination.k8s.io=none,fsync',
      durabilityModes,
    )
    .option(
      '--history-limit <sizes>',
      'bytes of old versions kept, or by resource: pods=64MiB',
      historySizes,
    )
    .option('--memory-limit <size>', 'above it, writes that grow the store are refused', sizeBytes)
    .option('--listen-client-urls <urls>', 'also serve the embedded store as etcd there', urls)
    .option('--event-ttl <duration>', 'events are kept so long (1h0m0s)')
    .option('--encryption-provider-config <file>', 'what is sealed at rest, and with which keys')
    .option(
      '--encryption-provider-config-automatic-reload [bool]',
      'whether a changed file is taken in without a restart',
      flagValue,
    )
    .optionsGroup('Data of a group of stores, in place of the embedded store (+):');
  addLeaderLease(addJournalAccess(command, 'its state is held here'));
  return command
    .optionsGroup('Data in etcd, in place of the embedded store:')
    .option('--etcd-servers <urls>', 'members of an etcd cluster, by commas')
    .option(
      '--etcd-servers-overrides <list>',
      'clusters of their own: group/resource#url;url, by commas',
      joined,
    )
    .option('--etcd-prefix <path>', 'what all keys start with (/registry)')
    .option('--etcd-cafile <file>', 'authority of their certificates')
    .option('--etcd-certfile <file>', 'certificate that this server shows them')
    .option('--etcd-keyfile <file>', 'its key')
    .option('--etcd-compaction-interval <duration>', 'history is kept so long (5m0s); 0 = for ever')
    .option(
      '--storage-media-type <type>',
      'of what is written (application/vnd.kubernetes.protobuf)',
    );
}

/** Who is who; the names are kube-apiserver's. */
function addAuthenticationOptions(command: Command): Command {
  return command
    .optionsGroup('Authentication:')
    .option(
      '--anonymous-auth [bool]',
      'whether requests without a credential reach /version and health (true)',
      flagValue,
    )
    .option('--token-auth-file <file>', 'CSV of token,user,uid,"group,group"')
    .option('--enable-bootstrap-token-auth [bool]', 'take tokens of Secrets', flagValue)
    .option('--authentication-config <file>', 'an AuthenticationConfiguration')
    .option('--oidc-issuer-url <url>', 'whose tokens are taken')
    .option('--oidc-client-id <id>', 'whom they must be for')
    .option('--oidc-username-claim <claim>', 'of the name (sub)')
    .option('--oidc-username-prefix <text>', 'before names (the issuer and #); - is nothing')
    .option('--oidc-groups-claim <claim>', 'of the groups')
    .option('--oidc-groups-prefix <text>', 'before groups')
    .option('--oidc-ca-file <file>', "authority of the issuer's certificate")
    .option('--oidc-signing-algs <list>', 'how tokens may be signed (RS256)')
    .option('--oidc-required-claim <key=value>', 'what tokens must say; may be repeated', joined)
    .option('--authentication-token-webhook-config-file <file>', 'kubeconfig of the webhook')
    .option('--authentication-token-webhook-version <version>', 'v1 or v1beta1 (v1beta1)')
    .option(
      '--authentication-token-webhook-cache-ttl <duration>',
      'answers are kept so long (2m0s)',
    )
    .option('--proxy-client-cert-file <file>', 'shown to API servers behind this one')
    .option('--proxy-client-key-file <file>', 'its private key')
    .option('--requestheader-client-ca-file <file>', 'authority of proxies that name users')
    .option('--requestheader-allowed-names <list>', 'common names of such proxies (any)')
    .option('--requestheader-username-headers <list>', 'fields such as X-Remote-User')
    .option('--requestheader-uid-headers <list>', 'fields such as X-Remote-Uid')
    .option('--requestheader-group-headers <list>', 'fields such as X-Remote-Group')
    .option('--requestheader-extra-headers-prefix <list>', 'such as X-Remote-Extra-')
    .optionsGroup('Tokens of service accounts:')
    .option('--service-account-issuer <url>', 'the first issues, further ones are taken', joined)
    .option('--service-account-signing-key-file <file>', 'what signs (default: made here)')
    .option('--service-account-key-file <file>', 'further keys whose tokens are taken', joined)
    .option('--api-audiences <list>', 'whom tokens must be for (the issuers)');
}

function addClusterOptions(command: Command): Command {
  return command
    .optionsGroup('Cluster:')
    .option('--service-cluster-ip-range <networks>', 'of services: one, or one of each family')
    .option('--advertise-address <ip>', 'where the Service kubernetes leads to this server')
    .option(
      '--endpoint-reconciler-type <type>',
      'who keeps that up: lease (each of several servers), or none',
    );
}

/** Who may do what; the names are kube-apiserver's. */
function addAuthorizationOptions(command: Command): Command {
  return command
    .optionsGroup('Authorization:')
    .option(
      '--authorization-mode <modes>',
      'who is asked, in this order: AlwaysAllow, AlwaysDeny, Node, RBAC, Webhook (Node,RBAC)',
    )
    .option('--authorization-config <file>', 'an AuthorizationConfiguration, in place of the modes')
    .option('--authorization-webhook-config-file <file>', 'kubeconfig of the webhook')
    .option('--authorization-webhook-version <version>', 'of what is posted: v1 or v1beta1')
    .option(
      '--authorization-webhook-cache-authorized-ttl <duration>',
      'what it allowed is remembered so long (5m0s)',
    )
    .option(
      '--authorization-webhook-cache-unauthorized-ttl <duration>',
      'what it did not allow is remembered so long (30s)',
    );
}

/** What is looked at before a write is stored; the names are kube-apiserver's. */
function addAdmissionOptions(command: Command): Command {
  return command
    .option(
      '--enable-admission-plugins <list>',
      'such as are off by default: AlwaysPullImages, EventRateLimit (see docs/admission.md)',
      joined,
    )
    .option('--disable-admission-plugins <list>', 'such as PodSecurity, by commas', joined)
    .option('--admission-control-config-file <file>', 'an AdmissionConfiguration: how plugins work')
    .option(
      '--default-not-ready-toleration-seconds <count>',
      'pods stay so long on a node that is not ready (300)',
      wholeNumber(0, 2 ** 53 - 1),
    )
    .option(
      '--default-unreachable-toleration-seconds <count>',
      'pods stay so long on a node out of reach (300)',
      wholeNumber(0, 2 ** 53 - 1),
    );
}

function addRequestOptions(command: Command): Command {
  return command
    .optionsGroup('Kubelets (logs, exec, attach, port-forward, proxy):')
    .option('--kubelet-client-certificate <file>', 'shown to kubelets (default: made here)')
    .option('--kubelet-client-key <file>', 'its key')
    .option('--kubelet-certificate-authority <file>', 'of their certificates (default: any)')
    .option(
      '--kubelet-preferred-address-types <list>',
      'Hostname,InternalDNS,InternalIP,ExternalDNS,ExternalIP',
    )
    .option('--kubelet-port <port>', 'where a node tells none (10250)', wholeNumber(1, 65_535))
    .optionsGroup('Limits:')
    .option('--max-requests-inflight <count>', 'reads at once (400); 0 = any', wholeNumber(0, 1e6))
    .option(
      '--max-mutating-requests-inflight <count>',
      'writes at once (200); 0 = any',
      wholeNumber(0, 1e6),
    )
    .option('--enable-priority-and-fairness <bool>', 'flow schemas share the limits above (true)')
    .option(
      '--max-connections-per-source <count>',
      'from one address (0 = any)',
      wholeNumber(0, 1e6),
    )
    .option('--request-timeout <duration>', 'of requests that do not last (1m0s)')
    .option('--goaway-chance <share>', 'of requests whose client is sent elsewhere, up to 0.02 (0)')
    .option('--shutdown-delay-duration <duration>', 'serves on, not ready, before it stops (0s)');
}

export function apiserverCommand(done: (exitCode: number) => void): Command {
  const command = new Command('apiserver')
    .summary('the Kubernetes API, on an embedded store')
    .description(
      'Serves the Kubernetes API over TLS from a store in the same process.\n\n' +
        'Example: megaplane apiserver --data-dir ./cluster --secure-port 6443',
    );
  addDataOptions(command)
    .optionsGroup('Serving:')
    .option(
      '--runtime-config <list>',
      'versions that are off by default: scheduling.k8s.io/v1alpha2=true',
      joined,
    )
    .addOption(featureGatesOption('kube-apiserver'))
    .option('--bind-address <ip>', 'where to listen', '127.0.0.1')
    .option('--secure-port <port>', '0 = a free one', wholeNumber(0, 65_535), 6443)
    .option(
      '--threads <count>',
      'that own connections and their TLS, beside the one that serves (0)',
      wholeNumber(0, 256),
    )
    .option(
      '--unix-socket <path>',
      'also listen there; the owner of the file is cluster administrator',
      path,
    )
    .option('--tls-cert-file <file>', 'serving certificate (default: made at the first start)')
    .option('--tls-private-key-file <file>', 'its key');
  addAdmissionOptions(
    addAuthorizationOptions(addAuthenticationOptions(addAuditOptions(addRequestOptions(command))))
      .optionsGroup('Access:')
      .option('--client-ca-file <file>', 'further authorities of client certificates'),
  );
  addServingFlags(addClusterOptions(command));
  return addLogOptions(command).action(async (asked: ApiserverFlags) => {
    const version = versionText(asked.version);
    if (version !== null) {
      process.stdout.write(version);
      done(0);
      return;
    }
    done(await run(command, { ...asked, ...withKlogFlags(asked) }));
  });
}

/** Resolves with the exit code. */
async function run(command: Command, flags: ApiserverFlags): Promise<number> {
  const refused = refusedApiserverFlag(command);
  if (refused !== null) throw new Error(refused);
  return serve(async () => {
    const { applyRuntimeConfig } = await import('@megaplane/apiserver/runtime-config');
    applyRuntimeConfig(flags.runtimeConfig ?? '');
    const { applyNodePortRange } = await import('@megaplane/apiserver/node-port-range');
    applyNodePortRange(flags.serviceNodePortRange ?? '');
    const { applyProcessFlags } = await import('@megaplane/apiserver/process-flags');
    applyProcessFlags(flags);
    const { log, setVerbosity } = adjustableLogger(flags);
    const gates = gatesWarning(flags.featureGates);
    if (gates !== '') log('warn', gates);
    const unused = foreignWarning('no effect here', unusedApiserverFlags(command));
    if (unused !== '') log('warn', unused);
    const { runApiserver } = await import('@megaplane/apiserver/run');
    const all = { ...optionsOf(flags), log, setVerbosity, flags: flagValues(command) };
    return runApiserver(all);
  });
}
