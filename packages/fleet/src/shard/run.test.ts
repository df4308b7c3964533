import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import type { DescMessage, MessageInitShape, MessageShape } from '@bufbuild/protobuf';
import { Client, Server, ServerCredentials, credentials as clientCredentials } from '@grpc/grpc-js';
import type { ClientDuplexStream, ServerUnaryCall, sendUnaryData } from '@grpc/grpc-js';
import { Random } from '@megaplane/base/random';
import { CallError, pathOfMethod } from '../contract/calls.ts';
import { CapacityProvider } from '../contract/tables/provider.ts';
import { OperatorMessageSchema, Shard, ShardMessageSchema } from '../contract/tables/shard.ts';
import type { OperatorMessage, ShardMessage } from '../contract/tables/shard.ts';
import {
  InspectNeedsRequestSchema,
  InspectNeedsResponseSchema,
  ShardRead,
} from '../contract/tables/shardread.ts';
import type { InspectNeedsResponse } from '../contract/tables/shardread.ts';
import { SHARD_DEFAULTS } from '../engine/shard.ts';
import { simulatedBackend } from '../provider/backends.ts';
import { readCatalogue } from '../provider/catalogue.ts';
import { Provider } from '../provider/provider.ts';
import { runShard } from './run.ts';

const { method } = CapacityProvider;

function bytesOf<Schema extends DescMessage>(schema: Schema) {
  return (message: MessageShape<Schema>): Buffer => Buffer.from(toBinary(schema, message));
}

function messageOf<Schema extends DescMessage>(schema: Schema) {
  return (bytes: Buffer): MessageShape<Schema> => fromBinary(schema, bytes);
}

/** A provider that somebody else's gRPC serves. */
async function foreignProvider(): Promise<{ readonly port: number; stop(): void }> {
  const facts = { instanceType: 'm4', zones: ['a'], capacityType: 'OnDemand', price: 1 };
  const offer = { ...facts, slots: 2, resources: { cpu: 4 } };
  const catalogue = readCatalogue({ offers: [offer], latencies: {} });
  const backend = simulatedBackend(catalogue, new Random(1));
  const { machines } = catalogue;
  const provider = new Provider({ machines, backend, timeoutMs: 60_000, instance: 1 });
  const server = new Server();
  const nowMs = (): number => performance.now();
  const serve = <Input extends DescMessage, Output extends DescMessage>(
    one: { readonly input: Input; readonly output: Output } & Parameters<typeof pathOfMethod>[0],
    answer: (request: MessageShape<Input>) => MessageShape<Output>,
  ): void => {
    const handle = (
      { request }: ServerUnaryCall<MessageShape<Input>, MessageShape<Output>>,
      reply: sendUnaryData<MessageShape<Output>>,
    ): void => {
      try {
        reply(null, answer(request));
      } catch (error) {
        const code = error instanceof CallError ? error.code : 13;
        reply({ code, details: (error as Error).message });
      }
    };
    const path = pathOfMethod(one);
    server.register(path, handle, bytesOf(one.output), messageOf(one.input), 'unary');
  };
  serve(method.create, (request) => provider.create(request, nowMs()));
  serve(method.configure, (request) => provider.configure(request, nowMs()));
  serve(method.drain, (request) => provider.drain(request, nowMs()));
  serve(method.delete, (request) => provider.delete(request, nowMs()));
  serve(method.list, (filter) => provider.list(filter, nowMs()));
  const insecure = ServerCredentials.createInsecure();
  const port = await new Promise<number>((resolve, reject) => {
    server.bindAsync('127.0.0.1:0', insecure, (error, bound) => {
      if (error === null) resolve(bound);
      else reject(error);
    });
  });
  return { port, stop: () => server.forceShutdown() };
}

/** Certificates in a directory: an authority, and one for each URI. */
class Authority {
  readonly dir: string = mkdtempSync(join(tmpdir(), 'megaplane-shard-tls-'));

  constructor() {
    const files = ['-keyout', 'ca.key', '-out', 'ca.crt'];
    this.#openssl('req', '-x509', ...KEY, ...files, '-days', '30', '-subj', '/CN=ca');
  }

  issue(name: string, alternative: string): void {
    this.#openssl(
      ...['req', '-new', ...KEY, '-keyout', `${name}.key`, '-out', `${name}.csr`],
      ...['-subj', `/CN=${name}`],
    );
    writeFileSync(join(this.dir, `${name}.ext`), `subjectAltName=${alternative}\n`);
    const signer = ['-CA', 'ca.crt', '-CAkey', 'ca.key', '-CAcreateserial', '-days', '30'];
    const files = ['-in', `${name}.csr`, '-out', `${name}.crt`, '-extfile', `${name}.ext`];
    this.#openssl('x509', '-req', ...files, ...signer);
  }

  client(name: string, port: number): Client {
    const read = (file: string): Buffer => readFileSync(join(this.dir, file));
    const tls = clientCredentials.createSsl(
      ...([read('ca.crt'), read(`${name}.key`), read(`${name}.crt`)] as const),
    );
    return new Client(`localhost:${port}`, tls);
  }

  #openssl(...args: string[]): void {
    execFileSync('openssl', args, { cwd: this.dir, stdio: 'pipe' });
  }
}

const KEY = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'];

type Payload = NonNullable<MessageInitShape<typeof OperatorMessageSchema>['payload']>;

/** What an operator hears, and the code that its session ends with. */
class ForeignOperator {
  readonly heard: ShardMessage[] = [];
  readonly ended: Promise<number>;
  readonly #stream: ClientDuplexStream<OperatorMessage, ShardMessage>;
  onHeard: () => void = () => {};

  constructor(client: Client) {
    this.#stream = client.makeBidiStreamRequest(
      pathOfMethod(Shard.method.session),
      bytesOf(OperatorMessageSchema),
      messageOf(ShardMessageSchema),
    );
    this.#stream.on('data', (message: ShardMessage) => {
      this.heard.push(message);
      if (message.payload.case === 'bootstrapRequest') {
        const { requestId } = message.payload.value;
        const userData = new TextEncoder().encode('join');
        this.say({ case: 'bootstrapResponse', value: { requestId, userData } });
      }
      this.onHeard();
    });
    this.#stream.on('error', () => {});
    this.ended = new Promise((resolve) => {
      this.#stream.on('status', ({ code }: { code: number }) => resolve(code));
    });
  }

  say(payload: Payload): void {
    this.#stream.write(create(OperatorMessageSchema, { payload }));
  }

  hello(clusterId: string): void {
    this.say({ case: 'hello', value: { clusterId, protocolVersion: 'v1alpha1' } });
  }

  /** Resolves when so many machines are the cluster's. */
  async configured(count: number): Promise<void> {
    const machines = (): number => {
      const states = new Map<string, number>();
      for (const { payload } of this.heard) {
        if (payload.case !== 'nodeStateUpdate') continue;
        states.set(payload.value.machineId, payload.value.state);
      }
      return [...states.values()].filter((state) => state === 5).length;
    };
    while (machines() < count) {
      await new Promise<void>((resolve) => (this.onHeard = resolve));
    }
  }
}

function inspect(client: Client): Promise<InspectNeedsResponse[] | number> {
  const stream = client.makeServerStreamRequest(
    pathOfMethod(ShardRead.method.inspectNeeds),
    bytesOf(InspectNeedsRequestSchema),
    messageOf(InspectNeedsResponseSchema),
    create(InspectNeedsRequestSchema),
  );
  const frames: InspectNeedsResponse[] = [];
  stream.on('data', (frame: InspectNeedsResponse) => frames.push(frame));
  stream.on('error', () => {});
  return new Promise((resolve) => {
    stream.on('status', ({ code }: { code: number }) => resolve(code === 0 ? frames : code));
  });
}

test('somebody else’s gRPC plays operators and provider, each by its certificate', async () => {
  const authority = new Authority();
  const { dir } = authority;
  authority.issue('shard', 'DNS:localhost,URI:bigfleet://shard/s1');
  authority.issue('c1', 'URI:bigfleet://cluster/c1');
  authority.issue('c2', 'URI:bigfleet://cluster/c2');
  authority.issue('reader', 'URI:bigfleet://readonly');
  const provider = await foreignProvider();
  const shard = await runShard({
    ...{ shardId: 's1', dataDir: join(dir, 'data'), host: '127.0.0.1', port: 0 },
    ...{ metricsAddress: '127.0.0.1:0', engine: SHARD_DEFAULTS },
    providers: [{ host: '127.0.0.1', port: provider.port, isSecure: false }],
    tls: { cert: join(dir, 'shard.crt'), key: join(dir, 'shard.key'), ca: join(dir, 'ca.crt') },
    ...{ cycleMs: 50, joinMs: 60_000, concurrency: 4, isIncremental: true, log: () => {} },
  });
  const names = ['c1', 'c2', 'reader'] as const;
  const [one, two, reader] = names.map((name) => authority.client(name, shard.port));
  assert.ok(one !== undefined && two !== undefined && reader !== undefined);
  try {
    const liar = new ForeignOperator(two);
    liar.hello('c1');
    assert.equal(await liar.ended, 7);
    const mute = new ForeignOperator(one);
    mute.say({ case: 'reclaimAck', value: { instructionId: 'x' } });
    assert.equal(await mute.ended, 3);

    const operator = new ForeignOperator(one);
    operator.hello('c1');
    const need = { aggregateResources: { cpu: '8' }, minUnit: { cpu: '1' }, priority: 3 };
    operator.say({ case: 'rollup', value: { clusterId: 'c1', needs: [need] } });
    await operator.configured(2);
    assert.equal(operator.heard[0]?.payload.case, 'ack');

    assert.equal(await inspect(one), 7);
    const frames = await inspect(reader);
    assert.ok(typeof frames !== 'number');
    assert.deepEqual(
      frames.map(({ frame }) => frame.case),
      ['header', 'need'],
    );
    const row = frames[1]?.frame;
    assert.ok(row?.case === 'need');
    const { satisfied, clusterId, claimedMachineCount } = row.value;
    assert.deepEqual([satisfied, clusterId, claimedMachineCount], [true, 'c1', 2]);

    const newer = new ForeignOperator(one);
    newer.hello('c1');
    assert.equal(await operator.ended, 10);
    await newer.configured(2);
  } finally {
    for (const client of [one, two, reader]) client.close();
    await shard.stop();
    provider.stop();
    rmSync(dir, { recursive: true, force: true });
  }
});
