// shell: standard output
/** `megaplane doctor network`: what a crowd of nodes is to API servers, and to this machine. */
import {
  crowdLoad,
  crowdText,
  GRACE_SECONDS,
  MEASURED,
  serversFor,
} from '@megaplane/network/crowd';
import { examineConnections, findingsText, type Finding } from './findings.ts';
import { readMachine } from './machine.ts';

export interface DoctorNetworkFlags {
  readonly nodes: number;
  readonly servers: number;
  readonly connections: number;
  readonly watches: number;
  readonly cores: number;
  readonly output: 'text' | 'json';
}

/** Resolves with the exit code: 1 where something cannot be had on this machine. */
export async function doctorNetwork(flags: DoctorNetworkFlags): Promise<number> {
  const { nodes, servers, connections, watches, cores } = flags;
  const crowd = { nodes, servers, connections, watches, cores };
  const load = crowdLoad(crowd, MEASURED);
  const machine = await readMachine('.');
  const findings = [
    returns(load.lost.returnSeconds, () => serversFor(crowd, MEASURED, GRACE_SECONDS)),
    ...examineConnections(machine, {
      connections: load.lost.connections,
      files: load.descriptors,
      tracked: load.tracked,
      bytes: load.lost.processBytes + load.kernelBytes,
    }),
  ];
  const isSound = findings.every(({ verdict }) => verdict !== 'fault');
  if (flags.output === 'json') {
    const all = { sound: isSound, wanted: crowd, load, measured: MEASURED, findings };
    process.stdout.write(`${JSON.stringify(all)}\n`);
  } else process.stdout.write(`${crowdText(crowd, load)}\n${findingsText(findings)}`);
  return isSound ? 0 : 1;
}

/** Nodes that are not back in time are taken for lost, and their pods are made elsewhere. */
function returns(seconds: number, servers: () => number): Finding {
  const found = `${Math.ceil(seconds)} s; nodes are taken for lost after ${GRACE_SECONDS} s`;
  if (seconds <= GRACE_SECONDS) return { check: 'return', verdict: 'ok', found, change: '' };
  const change = `--servers ${servers()}, or a longer --node-monitor-grace-period (controllers)`;
  return { check: 'return', verdict: 'advice', found, change };
}
