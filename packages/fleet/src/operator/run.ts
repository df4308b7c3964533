// shell: the connections of `megaplane fleet operator`
import { serveHttp } from '@megaplane/client/http-endpoint';
import { createKubeClient } from '@megaplane/client/kube-client';
import type { ClientConnection } from '@megaplane/wire/client';
import { connect } from '@megaplane/wire/connect';
import type { ConnectTls } from '@megaplane/wire/connect';
import { grpcClient } from '@megaplane/wire/grpc-client';
import type { GrpcClientCall } from '@megaplane/wire/grpc';
import { MESSAGE_BYTES_MAX, pathOfMethod } from '../contract/calls.ts';
import { Shard } from '../contract/tables/shard.ts';
import { bootstrapTemplate } from './bootstrap.ts';
import { operatorMetrics } from './metrics-page.ts';
import { Operator } from './operator.ts';

export type { ConnectTls };

export interface RunOperatorOptions {
  readonly kubeconfig: string;
  readonly context?: string;
  readonly clusterId: string;
  /** Of the shard. */
  readonly host: string;
  readonly port: number;
  /** Asked before each dial, so that renewed files count. */
  readonly tls?: () => ConnectTls;
  /** `host:port` of metrics and health; none without it: an operator listens on nothing. */
  readonly metricsAddress?: string;
  readonly rollUpMs: number;
  readonly groupsByNamespace: boolean;
  /** Text of the bootstrap template; '' where machines need none. */
  readonly bootstrap: string;
  readonly bootstrapTtlSeconds: number;
  readonly log: (level: 'info' | 'warn', message: string) => void;
}

/** Starts an operator; it works until `stop`. Throws where the template is wrong. */
export async function runOperator(
  options: RunOperatorOptions,
): Promise<{ readonly listens: string; readonly metricsUrl: string; stop(): Promise<void> }> {
  const bootstrap = bootstrapTemplate(options.bootstrap);
  const { kubeconfig, context } = options;
  const client = await createKubeClient({
    kubeconfig,
    ...(context === undefined ? {} : { context }),
    userAgent: 'megaplane-fleet-operator',
  });
  const link = new ShardLink(options, () => operator);
  const operator: Operator = new Operator({
    ...options,
    ...{ client, bootstrap },
    dial: (stream) => link.dial(stream),
    flush: () => link.flush(),
  });
  const { metricsAddress } = options;
  const pages =
    metricsAddress === undefined
      ? null
      : await serveHttp(metricsAddress, ({ path }) => {
          if (path === '/metrics') {
            const contentType = 'text/plain; version=0.0.4';
            return { contentType, text: operatorMetrics(operator) };
          }
          return path === '/healthz' ? { contentType: 'text/plain', text: 'ok' } : null;
        });
  operator.start();
  const metrics = pages === null ? '' : `, metrics on ${pages.url}`;
  const shard = `${options.host}:${options.port}`;
  return {
    metricsUrl: pages?.url ?? '',
    listens: `${options.clusterId} of ${client.server}, shard ${shard}${metrics}`,
    stop: async () => {
      operator.stop();
      link.close();
      client.close();
      await pages?.close();
    },
  };
}

/** One stream at a time, over a connection of its own. */
class ShardLink {
  readonly #options: RunOperatorOptions;
  readonly #operator: () => Operator;
  #connection: ClientConnection | null = null;
  #call: GrpcClientCall | null = null;

  constructor(options: RunOperatorOptions, operator: () => Operator) {
    this.#options = options;
    this.#operator = operator;
  }

  dial(stream: number): void {
    this.close();
    const { host, port, tls } = this.#options;
    const connection = connect({ host, port, ...(tls === undefined ? {} : { tls: tls() }) });
    this.#connection = connection;
    const grpc = grpcClient(connection, { messageBytesMax: MESSAGE_BYTES_MAX });
    const call = grpc.open(pathOfMethod(Shard.method.session), {
      onMessage: (_call, bytes, start, end) => {
        this.#operator().received(stream, bytes.subarray(start, end));
      },
      onStatus: (_call, { code, message }) => {
        if (this.#call === call) this.#call = null;
        connection.destroy();
        this.#operator().ended(stream, `${message} (code ${code})`);
      },
    });
    this.#call = call;
    call.onWritable = (): void => this.flush();
    connection.onOpen = (): void => {
      this.#operator().opened(stream);
      this.flush();
    };
  }

  /** Sends what waits, as far as the shard takes it. */
  flush(): void {
    const call = this.#call;
    while (call !== null && !call.closed && call.writable() > 0) {
      const frame = this.#operator().session.next();
      if (frame === undefined) return;
      call.send(frame);
    }
  }

  close(): void {
    this.#call?.cancel();
    this.#call = null;
    this.#connection?.destroy();
    this.#connection = null;
  }
}
