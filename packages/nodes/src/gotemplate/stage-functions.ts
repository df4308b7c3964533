/** The functions that kwok adds to templates of stages. */
import { containerId } from './container-id.ts';
import { BUILTIN_FUNCTIONS } from './builtin-functions.ts';
import { isTrue, jsonOf, type GoValue } from './go-values.ts';
import { goJson, intOf, SPRIG_FUNCTIONS, textOf } from './sprig-functions.ts';
import { chanceFunctions, SPRIG_LINES } from './sprig-lines.ts';
import { SPRIG_PATTERNS } from './sprig-patterns.ts';
import { SPRIG_STRINGS } from './sprig-strings.ts';
import { timeFunctions } from './sprig-times.ts';
import { SPRIG_WORDS } from './sprig-words.ts';
import { withSignatures } from './signatures.ts';
import type { TemplateFunctions } from './template-run.ts';
import { yamlText } from './yaml-text.ts';

/** What templates may ask of the simulator. */
export interface StageWorld {
  nowMs(): number;
  /** Uniform in [0, 1). */
  random(): number;
  /** The version that simulated kubelets claim, `v1.36.1`. */
  readonly version: string;
  /** Addresses of the machine that a node claims to be. */
  nodeAddresses(node: string): readonly string[];
  /** The port of the kubelets; 0 = none. */
  readonly nodePort: number;
  /** Host name and address that all nodes are given; '' = none. */
  readonly nodeName: string;
  readonly nodeIp: string;
  /** Addresses of a pod, of the networks of its node. */
  podAddresses(pod: {
    readonly node: string;
    readonly isHostNetwork: boolean;
    readonly uid: string;
    readonly name: string;
    readonly namespace: string;
  }): readonly string[];
  /** One more of the common network, for whom it may concern. */
  anyAddress(): string;
}

/** Conditions of a healthy node; their times are null. */
const NODE_CONDITIONS: readonly Readonly<Record<string, string | null>>[] = [
  ['Ready', 'True', 'KubeletReady', 'kubelet is posting ready status'],
  [
    'MemoryPressure',
    'False',
    'KubeletHasSufficientMemory',
    'kubelet has sufficient memory available',
  ],
  ['DiskPressure', 'False', 'KubeletHasNoDiskPressure', 'kubelet has no disk pressure'],
  ['PIDPressure', 'False', 'KubeletHasSufficientPID', 'kubelet has sufficient PID available'],
  ['NetworkUnavailable', 'False', 'RouteCreated', 'RouteController created a route'],
].map(([type = '', status = '', reason = '', message = '']) => ({
  type,
  status,
  reason,
  message,
  lastHeartbeatTime: null,
  lastTransitionTime: null,
}));

/** JSON text; what is no string becomes the text of its JSON, as a string. */
function quoted(value: GoValue): string {
  const json = goJson(value);
  return json.startsWith('"') ? json : JSON.stringify(json);
}

/** RFC 3339 with as many digits of the second as needed, as Go's RFC3339Nano. */
export function nanoTime(timeMs: number): string {
  return new Date(timeMs).toISOString().replace(/\.?0+Z$/, 'Z');
}

/** All functions that templates of stages have. */
export function stageFunctions(world: StageWorld): TemplateFunctions {
  const startTime = nanoTime(world.nowMs());
  const podAddresses = (...args: GoValue[]): readonly string[] => {
    const [of, isHostNetwork, uid, name, namespace] = args;
    return world.podAddresses({
      node: textOrNone(of),
      isHostNetwork: isTrue(isHostNetwork),
      uid: textOrNone(uid),
      name: textOrNone(name),
      namespace: textOrNone(namespace),
    });
  };
  const nodeAddresses = (name: GoValue): readonly string[] => world.nodeAddresses(textOrNone(name));
  return withSignatures({
    ...BUILTIN_FUNCTIONS,
    ...SPRIG_FUNCTIONS,
    ...SPRIG_STRINGS,
    ...SPRIG_PATTERNS,
    ...SPRIG_WORDS,
    ...SPRIG_LINES,
    ...timeFunctions(() => world.nowMs()),
    ...chanceFunctions(() => world.random()),
    Quote: quoted,
    ContainerID: (uid, name) => containerId(textOrNone(uid), textOrNone(name)),
    Now: () => nanoTime(world.nowMs()),
    StartTime: () => startTime,
    YAML: (value, ...indent) => {
      const text = yamlText(jsonOf(value));
      const depth = indent.length === 1 ? Number(intOf(indent[0])) : 0;
      if (depth <= 0) return text;
      return `\n${text}`.replaceAll('\n', `\n${'  '.repeat(depth)}`);
    },
    Version: () => world.version,
    NodeConditions: () => NODE_CONDITIONS.map((condition) => ({ ...condition })),
    NodeName: () => world.nodeName,
    NodePort: () => BigInt(world.nodePort),
    NodeIP: () => world.nodeIp,
    NodeIPWith: (name) => nodeAddresses(name)[0] ?? '',
    NodeIPs: () => (world.nodeIp === '' ? [] : [world.nodeIp]),
    NodeIPsWith: (name) => [...nodeAddresses(name)],
    PodIP: (...args) => (args.length === 0 ? world.anyAddress() : (podAddresses(...args)[0] ?? '')),
    PodIPWith: (...args) => podAddresses(...args)[0] ?? '',
    PodIPs: (...args) => [...podAddresses(...args)],
    PodIPsWith: (...args) => [...podAddresses(...args)],
  });
}

function textOrNone(value: GoValue): string {
  return value === undefined || value === null ? '' : textOf(value);
}
