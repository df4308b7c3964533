/** Gives every node its blocks of pod addresses, of one or both families. */
import { CONTENT } from '@megaplane/client/client';
import type { Informer } from '@megaplane/client/informer';
import { parseJson } from '@megaplane/machinery/json-text';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { listAt, stringAt } from '@megaplane/machinery/json';
import type { ControllerContext } from '../framework/controller-context.ts';
import type { Announce } from '../framework/event-recorder.ts';
import type { ControllersOptions } from '../framework/options.ts';
import { Workers, type WorkResult } from '../framework/workers.ts';
import { CidrMetrics } from './cidr-metrics.ts';
import {
  blockText,
  CidrPool,
  MASK_BITS_MAX,
  parseBlock,
  PLAN_BITS_MAX,
  type Block,
} from './cidr-pool.ts';
import { NodeNumbers } from './node-numbers.ts';

const WORKERS = 30;
const NODES = '/api/v1/nodes';
const NODE_MASK_4 = 24;
const NODE_MASK_6 = 64;
/** Of a plan below a /64, as providers give it to a machine. */
const NODE_MASK_6_PLANNED = 96;
const ASSIGNED = Buffer.from('"podCIDR');
/** A block that was not to be had is asked for again; a node that goes frees one at once. */
const FULL_AGAIN_MS = 30_000;

export interface NodeCidrsOptions extends ControllerContext {
  readonly pools: readonly CidrPool[];
  /** The pieces of a node are those of its number, and no others. */
  readonly isPlanned: boolean;
  readonly announce: Announce;
}

/** Pools by the flags, or a text that says what is wrong with them; none where none are wanted. */
export function poolsOf(options: ControllersOptions): readonly CidrPool[] | string {
  if (options.allocateNodeCidrs !== true) return [];
  const texts = options.clusterCidr ?? [];
  if (texts.length === 0) return '--allocate-node-cidrs needs --cluster-cidr';
  if (texts.length > 2) return '--cluster-cidr: at most one block of each family';
  const blocks: Block[] = [];
  for (const text of texts) {
    const block = parseBlock(text);
    if (block === undefined) return `--cluster-cidr: "${text}" is no block of addresses`;
    if (blocks.some((one) => one.bits === block.bits)) {
      return '--cluster-cidr: two blocks must be of different families';
    }
    blocks.push(block);
  }
  const wrong = wrongMasks(options, blocks);
  if (wrong !== '') return wrong;
  const pools: CidrPool[] = [];
  const isPlanned = options.nodeCidrAllocator === 'plan';
  for (const block of blocks) {
    const usual = usualMask(block, isPlanned);
    const ofFamily =
      block.bits === 32 ? options.nodeCidrMaskSizeIpv4 : options.nodeCidrMaskSizeIpv6;
    try {
      const mask = ofFamily || options.nodeCidrMaskSize || usual;
      pools.push(new CidrPool(block, mask, isPlanned ? PLAN_BITS_MAX : MASK_BITS_MAX));
    } catch (error) {
      return `--cluster-cidr: ${(error as Error).message}`;
    }
  }
  for (const text of options.serviceClusterIpRange ?? []) {
    const block = parseBlock(text);
    if (block === undefined) return `--service-cluster-ip-range: "${text}" is no block`;
    for (const pool of pools) pool.occupy(block);
  }
  return pools;
}

function usualMask({ bits, mask }: Block, isPlanned: boolean): number {
  if (bits === 32) return NODE_MASK_4;
  return isPlanned && mask > NODE_MASK_6 ? NODE_MASK_6_PLANNED : NODE_MASK_6;
}

/** What upstream says of masks that are not for these families; '' for nothing. */
function wrongMasks(options: ControllersOptions, blocks: readonly Block[]): string {
  const { nodeCidrMaskSize, nodeCidrMaskSizeIpv4, nodeCidrMaskSizeIpv6 } = options;
  const [own, own4, own6] = [nodeCidrMaskSize, nodeCidrMaskSizeIpv4, nodeCidrMaskSizeIpv6].map(
    (size) => (size ?? 0) > 0,
  );
  const [first] = blocks;
  if (own === true && blocks.length > 1) {
    return 'usage of --node-cidr-mask-size is not allowed with dual-stack clusters';
  }
  if (own === true && (own4 === true || own6 === true)) {
    return (
      'usage of --node-cidr-mask-size-ipv4 and --node-cidr-mask-size-ipv6 is not allowed if ' +
      '--node-cidr-mask-size is set. For dual-stack clusters please unset it and use IPFamily ' +
      'specific flags'
    );
  }
  if (blocks.length !== 1 || first === undefined) return '';
  const of = (flag: 4 | 6, only: 4 | 6): string =>
    `usage of --node-cidr-mask-size-ipv${flag} is not allowed for a single-stack ` +
    `IPv${only} cluster`;
  if (first.bits === 32) return own6 === true ? of(6, 4) : '';
  return own4 === true ? of(4, 6) : '';
}

export class NodeCidrsController {
  readonly #options: NodeCidrsOptions;
  readonly #workers: Workers<string>;
  readonly #nodes: Informer;
  /** Blocks of each node that has some. */
  readonly #blocks: Map<string, readonly Block[]> = new Map();
  readonly #metrics: CidrMetrics;
  readonly #waiting: Set<string> = new Set();
  readonly #numbers = new NodeNumbers();
  /** The answer was lost, so the node may have its blocks or not: they stay taken meanwhile. */
  readonly #doubtful: Set<string> = new Set();

  constructor(options: NodeCidrsOptions) {
    this.#options = options;
    const { client, informers, onError } = options;
    this.#metrics = new CidrMetrics(informers.metrics, options.pools);
    this.#workers = new Workers(
      client.timers,
      WORKERS,
      (name) => this.#work(name),
      onError,
      informers.queues.queue('cidrallocator_node'),
    );
    this.#nodes = informers.subscribe(
      { path: NODES },
      {
        onUpsert: (row, _isNew, bytes, start, end) => {
          const name = this.#nodes.keyOf(row);
          if (this.#blocks.has(name)) return;
          const object = Buffer.from(bytes.buffer, bytes.byteOffset + start, end - start);
          if (object.includes(ASSIGNED)) this.#adopt(name, object);
          if (options.isPlanned) this.#numbers.note(name, object);
          if (!this.#blocks.has(name)) this.#workers.add(name);
        },
        onDelete: (row) => this.#release(this.#nodes.keyOf(row)),
      },
    );
  }

  start(): void {
    this.#workers.start();
  }

  stop(): void {
    this.#workers.stop();
  }

  #adopt(name: string, object: Buffer): void {
    const node = parseJson(object.toString('utf8')) as JsonObject;
    const texts = listAt(node, 'spec', 'podCIDRs').filter((one) => typeof one === 'string');
    const all = texts.length > 0 ? texts : [stringAt(node, 'spec', 'podCIDR')];
    const blocks = all.map((one) => parseBlock(one)).filter((one) => one !== undefined);
    if (blocks.length === 0) return;
    for (const block of blocks) {
      for (const pool of this.#options.pools) {
        const before = pool.count;
        pool.occupy(block);
        if (pool.count > before) this.#metrics.gave(pool);
      }
    }
    this.#blocks.set(name, blocks);
  }

  #release(name: string): void {
    this.#waiting.delete(name);
    this.#doubtful.delete(name);
    this.#numbers.forget(name);
    this.#workers.queue.drop(name);
    const blocks = this.#blocks.get(name);
    if (blocks === undefined) return;
    this.#blocks.delete(name);
    this.#free(blocks);
    // Whoever waits longest comes first.
    const [next] = this.#waiting;
    if (next !== undefined) this.#workers.add(next);
  }

  #free(blocks: readonly Block[]): void {
    for (const block of blocks) {
      for (const pool of this.#options.pools) {
        const before = pool.count;
        pool.release(block);
        if (pool.count < before) this.#metrics.freed(pool);
      }
    }
  }

  async #work(name: string): Promise<WorkResult> {
    if (this.#nodes.find('', name) < 0) return 'done';
    if (this.#doubtful.has(name)) return this.#clearUp(name);
    if (this.#blocks.has(name)) return 'done';
    const blocks: Block[] = [];
    for (const pool of this.#options.pools) {
      const block = this.#options.isPlanned ? pool.take(this.#numbers.of(name)) : pool.allocate();
      // Whoever gets nothing of one family leaves the turns of the next families alone.
      if (block === undefined) break;
      blocks.push(block);
      this.#metrics.gave(pool, pool.passed);
    }
    if (blocks.length < this.#options.pools.length) {
      this.#free(blocks);
      if (!this.#waiting.has(name)) this.#tell(name, 'CIDRNotAvailable');
      this.#waiting.add(name);
      return { againMs: FULL_AGAIN_MS };
    }
    this.#waiting.delete(name);
    // Before the answer: the watch may tell of it first.
    this.#blocks.set(name, blocks);
    const podCIDRs = blocks.map(blockText);
    const answer = await this.#options.client.request({
      method: 'PATCH',
      path: `${NODES}/${name}`,
      contentType: CONTENT.mergePatch,
      body: { spec: { podCIDR: podCIDRs[0] ?? '', podCIDRs } },
    });
    if (answer.ok) return 'done';
    if (answer.code === 0) {
      this.#doubtful.add(name);
      return 'retry';
    }
    this.#blocks.delete(name);
    this.#free(blocks);
    if (answer.code === 404) return 'done';
    this.#tell(name, 'CIDRAssignmentFailed');
    // A node that has blocks already refuses others: its own come with the watch.
    return 'retry';
  }

  async #clearUp(name: string): Promise<WorkResult> {
    const answer = await this.#options.client.request({ method: 'GET', path: `${NODES}/${name}` });
    if (!answer.ok && answer.code !== 404) return 'retry';
    this.#doubtful.delete(name);
    const blocks = this.#blocks.get(name) ?? [];
    const [first] = blocks;
    const own = answer.ok ? stringAt(answer.object, 'spec', 'podCIDR') : '';
    if (first === undefined || own === blockText(first)) return 'done';
    this.#blocks.delete(name);
    this.#free(blocks);
    if (own === '') return answer.ok ? 'retry' : 'done';
    this.#adopt(name, Buffer.from(JSON.stringify(answer.ok ? answer.object : {})));
    return 'done';
  }

  #tell(name: string, reason: string): void {
    const text = `Node ${name} status is now: ${reason}`;
    this.#options.announce('Node', '', name, 'Normal', reason, text);
  }
}
