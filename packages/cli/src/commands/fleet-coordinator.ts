// shell: `megaplane fleet coordinator`, which shards there are and what each has
import { Command, InvalidArgumentError } from 'commander';
import type { ConnectTls } from '@megaplane/fleet/operator/run';
import { addTlsFlags, tlsFilesOf } from '../flags/fleet-tls.ts';
import type { TlsFlags } from '../flags/fleet-tls.ts';
import { readNamed } from '../flags/named-file.ts';
import { hostPort, wholeNumber } from '../parsers/flag-parsers.ts';
import type { HostPort } from '../parsers/flag-parsers.ts';
import { addLogOptions, logger } from '../service/logging.ts';
import type { LogFlags } from '../service/logging.ts';
import { serve } from '../service/service.ts';

type Done = (exitCode: number) => void;

const LISTEN: HostPort = { host: '127.0.0.1', port: 7790 };
const METRICS = '127.0.0.1:8790';
const ETCD = 'http://127.0.0.1:2379';
const PREFIX = '/bigfleet/';

interface CoordinatorFlags extends LogFlags, TlsFlags {
  readonly etcdServers: string;
  readonly etcdCafile?: string;
  readonly etcdCertfile?: string;
  readonly etcdKeyfile?: string;
  readonly prefix: string;
  readonly leaderTtl: number;
  readonly listen: HostPort;
  readonly advertise?: string;
  readonly metricsAddress: string;
}

export function coordinatorCommand(done: Done): Command {
  const command = new Command('coordinator')
    .summary('which shards there are, and what each has')
    .description(
      'Keeps shards, their clusters and domains, quotas and providers in etcd, and hears what\n' +
        'shards report. Start several: one leads, by a lease. Nothing stops while none does.\n\n' +
        'Example: megaplane fleet coordinator --etcd-servers http://127.0.0.1:2379',
    )
    .option('--etcd-servers <urls>', 'members of an etcd v3 cluster, by commas', ETCD)
    .option('--etcd-cafile <file>', 'authority of their certificates')
    .option('--etcd-certfile <file>', 'certificate for them')
    .option('--etcd-keyfile <file>', 'its key')
    .option('--prefix <text>', 'keys of this fleet begin so', prefix, PREFIX)
    .option('--leader-ttl <seconds>', 'a leader that is gone leads so long', wholeNumber(2, 300), 5)
    .option('--listen <host:port>', 'where shards and tools reach it', hostPort, LISTEN)
    .option('--advertise <host:port>', 'where it is reached, if not where it listens')
    .option('--metrics-address <host:port>', 'metrics and health', METRICS);
  addTlsFlags(command, 'the coordinator', 'shards and tools');
  return addLogOptions(command).action(async (flags: CoordinatorFlags) => {
    const tls = tlsFilesOf(command, flags);
    done(
      await serve(async () => {
        const { runCoordinator } = await import('@megaplane/fleet/coordinator/run');
        const { EtcdClient } = await import('@megaplane/etcd/client/client');
        const { parseEndpoints } = await import('@megaplane/etcd/client/endpoints');
        const log = logger(flags);
        const etcdTls = etcdTlsOf(flags);
        const keeping = new EtcdClient({
          endpoints: parseEndpoints('--etcd-servers', flags.etcdServers),
          tls: etcdTls,
          log: (message) => log('warn', `etcd: ${message}`),
        });
        const coordinator = await runCoordinator({
          ...{ ...flags.listen, metricsAddress: flags.metricsAddress, keeping, log },
          ...{ prefix: flags.prefix, ttlSeconds: flags.leaderTtl },
          ...(flags.advertise === undefined ? {} : { advertised: flags.advertise }),
          ...(tls === undefined ? {} : { tls }),
        });
        return {
          ...coordinator,
          stop: async () => {
            await coordinator.stop();
            keeping.close();
          },
        };
      }),
    );
  });
}

/** Read for each connection, so that renewed files count. */
function etcdTlsOf(flags: CoordinatorFlags): () => ConnectTls | null {
  const { etcdCafile: ca, etcdCertfile: cert, etcdKeyfile: key } = flags;
  if (ca === undefined && cert === undefined && key === undefined) return () => null;
  return () => ({
    ...(ca === undefined ? {} : { ca: readNamed('--etcd-cafile', ca) }),
    ...(cert === undefined ? {} : { cert: readNamed('--etcd-certfile', cert) }),
    ...(key === undefined ? {} : { key: readNamed('--etcd-keyfile', key) }),
  });
}

function prefix(text: string): string {
  if (/^\/[^\s]*\/$|^\/$/.test(text)) return text;
  throw new InvalidArgumentError('it begins and ends with a slash.');
}
