/** From what V8's profilers tell to profiles that other tools read. */
import type { Frame, Profile, Sample } from './pprof.ts';

/** As the inspector's protocol has it; lines are counted from 0. */
interface CallFrame {
  readonly functionName: string;
  readonly url: string;
  readonly lineNumber: number;
}

interface CpuNode {
  readonly id: number;
  readonly callFrame: CallFrame;
  readonly children?: readonly number[] | undefined;
}

/** `Profiler.Profile`; times in microseconds. */
export interface CpuProfile {
  readonly nodes: readonly CpuNode[];
  readonly startTime: number;
  readonly endTime: number;
  readonly samples?: readonly number[] | undefined;
  readonly timeDeltas?: readonly number[] | undefined;
}

/** `HeapProfiler.SamplingHeapProfileNode`. */
interface HeapNode {
  readonly callFrame: CallFrame;
  readonly selfSize: number;
  readonly children: readonly HeapNode[];
}

/** V8's own name for time in which nothing ran; Go's profiles do not have it. */
const IDLE = '(idle)';

/** Where processor time went. `startedMs` is by the wall clock. */
export function cpuProfileOf(profile: CpuProfile, startedMs: number, intervalUs: number): Profile {
  const parents = new Map<number, CpuNode>();
  const nodes = new Map<number, CpuNode>();
  for (const node of profile.nodes) {
    nodes.set(node.id, node);
    for (const child of node.children ?? []) parents.set(child, node);
  }
  const spent = new Map<number, { count: number; us: number }>();
  for (const [index, id] of (profile.samples ?? []).entries()) {
    const own = spent.get(id) ?? { count: 0, us: 0 };
    spent.set(id, own);
    own.count++;
    // a sample stands for the time until the next
    own.us += Math.max(0, profile.timeDeltas?.[index + 1] ?? intervalUs);
  }
  const samples: Sample[] = [];
  for (const [id, { count, us }] of spent) {
    const node = nodes.get(id);
    if (node === undefined || node.callFrame.functionName === IDLE) continue;
    const stack: Frame[] = [];
    let at: CpuNode | undefined = node;
    while (at !== undefined && parents.has(at.id)) {
      stack.push(frameOf(at.callFrame));
      at = parents.get(at.id);
    }
    samples.push({ stack, values: [count, us * 1000] });
  }
  return {
    types: [
      ['samples', 'count'],
      ['cpu', 'nanoseconds'],
    ],
    samples,
    startedMs,
    durationMs: (profile.endTime - profile.startTime) / 1000,
    periodType: ['cpu', 'nanoseconds'],
    period: intervalUs * 1000,
  };
}

/** Memory that V8 does not sample, by what it is: of arrays outside the heap, for one. */
export type OtherMemory = Readonly<Record<string, number>>;

/** What memory is for: objects made while it was looked at, and the rest by what is known of it. */
export function heapProfileOf(
  head: HeapNode,
  other: OtherMemory,
  startedMs: number,
  durationMs: number,
  intervalBytes: number,
): Profile {
  const samples: Sample[] = [];
  const walk = (node: HeapNode, outer: readonly Frame[]): void => {
    const stack = [frameOf(node.callFrame), ...outer];
    if (node.selfSize > 0) samples.push({ stack, values: [node.selfSize] });
    for (const child of node.children) walk(child, stack);
  };
  for (const child of head.children) walk(child, []);
  const sampled = samples.reduce((sum, { values }) => sum + (values[0] ?? 0), 0);
  for (const [name, size] of Object.entries(other)) {
    const rest = name === HEAP_NAME ? Math.max(0, size - sampled) : size;
    samples.push({ stack: [{ name: `(${name})`, file: '', line: 0 }], values: [rest] });
  }
  return {
    types: [['inuse_space', 'bytes']],
    samples,
    startedMs,
    durationMs,
    periodType: ['space', 'bytes'],
    period: intervalBytes,
  };
}

/** In `OtherMemory`: all of the heap, of which what was sampled is a part. */
export const HEAP_NAME = 'objects from before';

function frameOf({ functionName, url, lineNumber }: CallFrame): Frame {
  return {
    name: functionName === '' ? '(anonymous)' : functionName,
    file: url,
    line: lineNumber + 1,
  };
}
