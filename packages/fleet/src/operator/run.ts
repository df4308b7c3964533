// shell: the connections of `megaplane fleet operator`
import { createKubeClient } from '@megaplane/client/kube-client';
import type { ClientConnection } from '@megaplane/wire/client';
import { connect } from '@megaplane/wire/connect';
import type { ConnectTls } from '@megaplane/wire/connect';
import { grpcClient } from '@megaplane/wire/grpc-client';
import type { GrpcClientCall } from '@megaplane/wire/grpc';
import { MESSAGE_BYTES_MAX, pathOfMethod } from '../contract/calls.ts';
import { Shard } from '../contract/tables/shard.ts';
import { bootstrapTemplate } from './bootstrap.ts';
import { Operator } from './operator.ts';

export type { ConnectTls };

export interface RunOperatorOptions {
  readonly kubeconfig: string;
  readonly context?: string;
  readonly clusterId: string;
  /** Of the shard. */
  readonly host: string;
  readonly port: number;
  readonly tls?: ConnectTls;
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
): Promise<{ readonly listens: string; stop(): Promise<void> }> {
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
  operator.start();
  return {
    listens: `${options.clusterId} of ${client.server}, shard ${options.host}:${options.port}`,
    stop: () => {
      operator.stop();
      link.close();
      client.close();
      return Promise.resolve();
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
    const connection = connect({ host, port, ...(tls === undefined ? {} : { tls }) });
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
