// shell: starts a cluster, looks at it, and writes files
/** `megaplane bench million`: the founding experiment, and its report. */
import { afterMs, guarded } from '@megaplane/base/deferred';
import { createKubeClient, type KubeClient } from '@megaplane/client/kube-client';
import { spawn, type ChildProcess } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { cpus, release, tmpdir, totalmem } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { WANTED_FAMILIES } from '../observe/figures.ts';
import { lookAt, readProcesses, type Source } from '../observe/sources.ts';
import { lineSvg, writePicture } from '../plot/plot.ts';
import { crowd, refusal } from '../up/capacity.ts';
import { paths } from '../up/plan.ts';
import { createPods } from '../up/workload.ts';
import { graphsOf } from './graphs.ts';
import { reportPage } from './report-page.ts';
import { RunRecorder, type RunRecord } from './run-record.ts';
import { ownCommand } from '../service/self.ts';

const LOOK_EVERY_MS = 1000;
const TELL_EVERY_MS = 5000;
const METRICS = /https?:\/\/[^\s,;]+\/metrics/;

export interface MillionOptions {
  readonly nodes: number;
  readonly pods: number;
  /** Where the report goes. */
  readonly out: string;
  /** A cluster that is there already; only nodes and pods are made in it. */
  readonly kubeconfig?: string;
  readonly command: string;
}

/** Runs the experiment, writes the report, and resolves with the exit code. */
export async function runMillion(options: MillionOptions): Promise<number> {
  judge(options);
  mkdirSync(options.out, { recursive: true });
  const end = new AbortController();
  let signals = 0;
  const onSignal = guarded(() => {
    if (++signals > 1) process.exit(1);
    process.stderr.write('megaplane: ending; the report says what there is\n');
    end.abort();
  });
  process.on('SIGINT', onSignal).on('SIGTERM', onSignal);
  const recorder = new RunRecorder(options.nodes, options.pods);
  const dataDir = mkdtempSync(join(tmpdir(), 'megaplane-million-'));
  try {
    if (options.kubeconfig === undefined) await withUp(options, dataDir, recorder, end);
    else await withCluster(options, options.kubeconfig, recorder, end);
  } finally {
    process.off('SIGINT', onSignal).off('SIGTERM', onSignal);
    rmSync(dataDir, { recursive: true, force: true });
  }
  if (recorder.history.rows === 0) throw new Error('nothing was seen: the cluster did not start');
  const record = recorder.record({ machine: machine(), command: options.command });
  await writeReport(options.out, record);
  return record.isWhole ? 0 : 1;
}

/** Refuses in a second what would end in the kernel's killer, or never. */
function judge({ nodes, pods, kubeconfig }: MillionOptions): void {
  const full = crowd(pods, nodes);
  if (full !== undefined) throw new Error(`--pods: ${full}`);
  const constrained = process.constrainedMemory();
  const bytes = constrained > 0 ? Math.min(totalmem(), constrained) : totalmem();
  const why = kubeconfig === undefined ? refusal(nodes, pods, bytes) : undefined;
  if (why !== undefined) throw new Error(`--nodes: ${why}`);
}

/** A cluster of our own, by the command that people type. */
async function withUp(
  { nodes, pods }: MillionOptions,
  dataDir: string,
  recorder: RunRecorder,
  end: AbortController,
): Promise<void> {
  const size = ['--nodes', `${nodes}`, '--pods', `${pods}`];
  const flags = ['--data-dir', dataDir, '--secure-port', '0', '--page-port', '0'];
  const up = start(['up', ...size, ...flags, '--output', 'json'], end);
  try {
    const { administrator, processes } = paths(dataDir);
    const sources = (): readonly Source[] => readProcesses(processes);
    while (!end.signal.aborted && sources().length < 2) await pause(end);
    if (end.signal.aborted) return;
    const client = await createKubeClient({ kubeconfig: administrator });
    try {
      await watch(client, sources, recorder, end);
    } finally {
      client.close();
    }
  } finally {
    await stop(up);
  }
}

/** In a cluster that is there, nodes are simulated and pods made as `up` makes them. */
async function withCluster(
  { nodes, pods }: MillionOptions,
  kubeconfig: string,
  recorder: RunRecorder,
  end: AbortController,
): Promise<void> {
  const flags = ['--kubeconfig', kubeconfig, '--create', `${nodes}`];
  const simulator = start(['nodes', ...flags, '--server-address', '127.0.0.1:0'], end);
  const listens = new Promise<string>((resolve) => {
    const { stdout } = simulator;
    if (stdout === null) return resolve('');
    createInterface({ input: stdout }).on(
      'line',
      guarded((line) => resolve(METRICS.exec(line)?.[0] ?? '')),
    );
    end.signal.addEventListener(
      'abort',
      guarded(() => resolve('')),
    );
  });
  const client = await createKubeClient({ kubeconfig });
  try {
    const metrics = await listens;
    const all: Source[] = [
      { name: 'apiserver', pid: 0, metrics: '' },
      { name: 'nodes', pid: simulator.pid ?? 0, metrics },
    ];
    const making = { promise: Promise.resolve(), isBegun: false };
    await watch(
      client,
      () => all,
      recorder,
      end,
      () => {
        if (making.isBegun || recorder.counts.ready < nodes) return;
        making.isBegun = true;
        making.promise = createPods(client, pods, end.signal);
        // the first pod that is refused ends the run
        making.promise.catch((error: unknown) => {
          process.stderr.write(`megaplane: ${(error as Error).message}\n`);
          end.abort();
        });
      },
    );
  } finally {
    client.close();
    await stop(simulator);
  }
}

function start(args: readonly string[], end: AbortController): ChildProcess {
  const { command, env } = ownCommand([], args, process.env);
  const [program, ...words] = command;
  const child = spawn(program, words, {
    env,
    stdio: ['ignore', 'pipe', 'inherit'],
    // a terminal's Ctrl-C is for this process, which ends the other one when it has looked
    detached: true,
  });
  child.stdout?.resume();
  child.once(
    'exit',
    guarded(() => end.abort()),
  );
  return child;
}

async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exited = new Promise<void>((resolve) => {
    child.once(
      'exit',
      guarded(() => resolve()),
    );
  });
  child.kill('SIGINT');
  await exited;
}

function pause(end: AbortController, ms: number = LOOK_EVERY_MS): Promise<void> {
  return new Promise((resolve) => {
    const timer = afterMs(ms, resolve);
    end.signal.addEventListener(
      'abort',
      guarded(() => {
        clearTimeout(timer);
        resolve();
      }),
      { once: true },
    );
  });
}

/** Looks once a second until all is bound and running, or the end has begun. */
async function watch(
  client: KubeClient,
  sources: () => readonly Source[],
  recorder: RunRecorder,
  end: AbortController,
  onLook: () => void = () => {},
): Promise<void> {
  const startMs = performance.now();
  let toldMs = startMs;
  while (!end.signal.aborted && !recorder.isDone) {
    const lookedMs = performance.now();
    recorder.add(await lookAt(sources(), client, WANTED_FAMILIES));
    onLook();
    if (lookedMs - toldMs >= TELL_EVERY_MS) {
      toldMs = lookedMs;
      const { ready, bound, running } = recorder.counts;
      const [at, ...all] = [(lookedMs - startMs) / 1000, ready, bound, running];
      const words = all.map((one) => (one ?? 0).toLocaleString('en-US'));
      process.stderr.write(
        `${(at ?? 0).toFixed(0)} s: ${words[0]} nodes ready, ${words[1]} pods bound, ` +
          `${words[2]} running\n`,
      );
    }
    await pause(end, Math.max(0, LOOK_EVERY_MS - (performance.now() - lookedMs)));
  }
}

function machine(): string {
  const [first] = cpus();
  const gib = (totalmem() / 2 ** 30).toFixed(0);
  const cores = `${cpus().length} x ${first?.model.trim() ?? '?'}`;
  return `${cores}, ${gib} GiB, ${process.platform} ${release()}, Node ${process.version}`;
}

async function writeReport(out: string, record: RunRecord): Promise<void> {
  const svgs: string[] = [];
  for (const { file, plot } of graphsOf(record)) {
    const svg = await lineSvg(plot);
    await writePicture(join(out, `${file}.svg`), svg);
    svgs.push(svg);
  }
  writeFileSync(join(out, 'report.json'), `${JSON.stringify(record, undefined, 1)}\n`);
  writeFileSync(join(out, 'report.html'), reportPage(record, svgs));
  const told = (seconds: number | null): string =>
    seconds === null ? 'not reached' : `${seconds.toFixed(1)} s`;
  process.stdout.write(
    `nodes ready   ${told(record.nodesReadySeconds)}\n` +
      `pods bound    ${told(record.boundSeconds)}\npods running  ${told(record.runningSeconds)}\n` +
      `memory        ${(record.peakMib / 1024).toFixed(2)} GiB at most\n` +
      `report        ${join(out, 'report.html')}\n`,
  );
}
