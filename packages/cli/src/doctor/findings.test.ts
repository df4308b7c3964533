import assert from 'node:assert/strict';
import { test } from 'node:test';
import { examine, examineConnections, findingsText } from './findings.ts';
import type { Finding, Machine, Wanted } from './findings.ts';
import { readMachine } from './machine.ts';

const SOUND: Machine = {
  platform: 'linux',
  architecture: 'x64',
  runtime: 'v26.10.0',
  kernel: '6.1.0',
  cores: 2,
  memoryBytes: 24 * 2 ** 30,
  availableBytes: 20 * 2 ** 30,
  filesSoft: 2_000_000,
  filesHard: 2_000_000,
  filesOfProcessMax: 2_000_000,
  filesOfSystemMax: 9_000_000,
  hugePages: 'madvise',
  acceptQueueMax: 4096,
  synQueueMax: 4096,
  tcpPagesMax: 2_000_000,
  tcpReadBytes: 131_072,
  tcpWriteBytes: 16_384,
  localPorts: [32_768, 60_999],
  trackedMax: undefined,
  mapsMax: 65_530,
  portsTaken: [],
  data: { place: '/srv/cluster', isWritable: true, freeBytes: 100 * 2 ** 30 },
};
const MILLION: Wanted = { nodes: 1_000_000, pods: 0, connections: 1_000_000 };

function found(change: Partial<Machine>, wanted: Wanted = MILLION): readonly Finding[] {
  return examine({ ...SOUND, ...change }, wanted).filter(({ verdict }) => verdict !== 'ok');
}

test('a machine that can hold what is wanted has neither fault nor advice', () => {
  assert.deepEqual(found({}), []);
});

test('each thing that is too small is named with the command that changes it', () => {
  const cases: readonly [Partial<Machine>, Finding['verdict'], RegExp][] = [
    [{ cores: 1 }, 'advice', /two/],
    [{ memoryBytes: 2 ** 32 }, 'fault', /fewer nodes/],
    [{ availableBytes: 2 ** 31 }, 'advice', /else takes memory/],
    [{ hugePages: 'never' }, 'advice', /echo madvise/],
    [{ filesHard: 1_048_576, filesOfProcessMax: 1_048_576 }, 'ok', /^$/],
    [{ filesHard: 20_000, filesOfProcessMax: 20_000 }, 'fault', /nr_open=1001000; then LimitNOFIL/],
    [{ filesHard: 20_000 }, 'fault', /^LimitNOFILE=1001000/],
    [{ filesOfSystemMax: 1_000_000 }, 'fault', /fs\.file-max=2001000/],
    [{ acceptQueueMax: 128 }, 'advice', /somaxconn=4096/],
    [{ synQueueMax: 256 }, 'advice', /syn_backlog=4096/],
    [{ tcpPagesMax: 1000 }, 'fault', /tcp_mem="500000 750000 1000000"/],
    [{ localPorts: [60_000, 60_999] }, 'advice', /1024 65535/],
    [{ trackedMax: 262_144 }, 'fault', /conntrack_max=2000000/],
    [{ mapsMax: 1024 }, 'advice', /max_map_count=65530/],
    [{ portsTaken: [6443, 10_257] }, 'advice', /6443: API server.*10257: controllers/],
    [{ data: { ...SOUND.data, isWritable: false } }, 'fault', /--data-dir/],
    [{ data: { ...SOUND.data, freeBytes: 1000 } }, 'advice', /make room/],
    [{ platform: 'win32' }, 'fault', /linux-x64/],
    [{ runtime: 'v22.1.0' }, 'fault', /Node 26/],
  ];
  for (const [change, verdict, words] of cases) {
    const findings = found(change);
    assert.equal(findings.length, verdict === 'ok' ? 0 : 1, JSON.stringify([change, findings]));
    assert.equal(findings[0]?.verdict ?? 'ok', verdict);
    assert.match(findings[0]?.change ?? '', words);
  }
});

test('what a system does not tell is not judged', () => {
  const silent = Object.fromEntries(Object.keys(SOUND).map((key) => [key, undefined]));
  const { platform, architecture, runtime, cores, memoryBytes, portsTaken, data } = SOUND;
  const told = {
    platform,
    architecture,
    runtime,
    kernel: '',
    cores,
    memoryBytes,
    portsTaken,
    data,
  };
  const checks = examine({ ...silent, ...told } as Machine, MILLION).map(({ check }) => check);
  assert.deepEqual(checks, ['platform', 'cores', 'memory', 'ports', 'data directory']);
});

test('this machine is read without a fault in the reading', async () => {
  const machine = await readMachine('./surely/not/there');
  assert(machine.cores >= 1 && machine.memoryBytes > 2 ** 28);
  assert(machine.data.place.endsWith('/surely/not/there'));
  assert(examine(machine, { nodes: 0, pods: 0, connections: 0 }).length >= 5);
});

test('a machine for a crowd is judged by what comes to it when another server is lost', () => {
  const wanted = { connections: 250_000, files: 251_000, tracked: 500_000, bytes: 2 ** 34 };
  const found = (change: Partial<Machine>, more: Partial<typeof wanted> = {}): string =>
    findingsText(
      examineConnections({ ...SOUND, ...change }, { ...wanted, ...more }).filter(
        ({ verdict }) => verdict !== 'ok',
      ),
    );
  assert.match(found({}), /^ADVICE +ports of a proxy .*\n +-> .*one with 9 addresses/);
  const ports = { localPorts: [1, 260_000] } as const;
  assert.equal(found(ports), '');
  assert.match(found({ ...ports, filesHard: 20_000 }), /FAULT .*250,000 connections want 251,000/);
  assert.match(found({ ...ports, filesOfSystemMax: 100_000 }), /fs\.file-max=252000/);
  assert.match(found({ ...ports, tcpPagesMax: 1000 }), /tcp_mem="125000 187500 250000"/);
  assert.match(found({ ...ports, trackedMax: 262_144 }), /conntrack_max=500000/);
  assert.equal(found({ ...ports, trackedMax: 600_000 }), '');
  assert.match(found(ports, { bytes: 2 ** 36 }), /FAULT +memory [^]*take more servers/);
});
