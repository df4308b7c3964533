// shell
/** What finding fields costs, against parsing: `node packages/machinery/src/json/scan.bench.ts`. */

import { splice, SPLICE_BYTES_MAX, headLength } from '../serializer/canonical.ts';
import { ObjectScan } from '../serializer/object-scan.ts';
import { decodeProtobuf, encodeProtobuf } from '../serializer/protobuf.ts';
import { decodeJsonBody } from '../codec/request-body.ts';
import { findPath, pathOf } from './scan.ts';

const LEASE =
  '{"kind":"Lease","apiVersion":"coordination.k8s.io/v1","metadata":{"name":"node-000042",' +
  '"namespace":"kube-node-lease","uid":"0f2b7e1c-1111-4222-8333-444455556666",' +
  '"creationTimestamp":"2026-01-02T03:04:05Z","ownerReferences":[{"apiVersion":"v1",' +
  '"kind":"Node","name":"node-000042","uid":"0f2b7e1c-9999-4222-8333-444455556666"}]},' +
  '"spec":{"holderIdentity":"node-000042","leaseDurationSeconds":40,' +
  '"renewTime":"2026-01-02T03:04:05.123456Z"}}';
const POD = JSON.stringify({
  kind: 'Pod',
  apiVersion: 'v1',
  metadata: { name: 'web-5b9c', namespace: 'default', uid: 'u', labels: { app: 'web', tier: 'x' } },
  spec: {
    containers: [1, 2].map((n) => ({
      name: `c${n}`,
      image: 'registry.example.com/app:1.2.3',
      ports: [{ containerPort: 80, protocol: 'TCP' }],
      env: [1, 2, 3, 4].map((e) => ({ name: `VARIABLE_${e}`, value: 'some value of it' })),
      resources: { limits: { cpu: '1', memory: '1Gi' }, requests: { cpu: '500m', memory: '1Gi' } },
      terminationMessagePath: '/dev/termination-log',
      terminationMessagePolicy: 'File',
      imagePullPolicy: 'IfNotPresent',
    })),
    restartPolicy: 'Always',
    terminationGracePeriodSeconds: 30,
    dnsPolicy: 'ClusterFirst',
    nodeName: 'node-000042',
    schedulerName: 'default-scheduler',
  },
  status: { phase: 'Running', podIP: '10.0.0.1', qosClass: 'Burstable' },
});

function measure(name: string, run: () => unknown): void {
  const rounds = [];
  for (let round = 0; round < 5; round++) {
    let count = 0;
    const start = process.cpuUsage();
    const startMs = performance.now();
    while (performance.now() - startMs < 150) {
      for (let index = 0; index < 200; index++) run();
      count += 200;
    }
    const used = process.cpuUsage(start);
    rounds.push(((used.user + used.system) * 1000) / count);
  }
  rounds.sort((left, right) => left - right);
  process.stdout.write(`${name.padEnd(44)} ${(rounds[2] ?? 0).toFixed(0).padStart(7)} ns\n`);
}

const scan = new ObjectScan();
const renewTime = pathOf('spec', 'renewTime');
const leaseKind = { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease' };
const head = headLength(leaseKind.apiVersion, leaseKind.kind);

for (const [name, text] of [
  ['lease', LEASE],
  ['pod', POD],
] as const) {
  const bytes = Buffer.from(text);
  const size = bytes.length;
  const expected = name === 'lease' ? leaseKind : { apiVersion: 'v1', kind: 'Pod' };
  measure(`${name} ${size} B: scan`, () => scan.scan(bytes, 0, size));
  measure(`${name} ${size} B: JSON.parse`, () => JSON.parse(bytes.toString('latin1', 0, size)));
  const decode = (): unknown => decodeJsonBody(bytes, 0, size, expected, true);
  measure(`${name} ${size} B: decode body, typed and strict`, decode);
  const object = JSON.parse(text) as Parameters<typeof encodeProtobuf>[0];
  const protobuf = encodeProtobuf(object) ?? Buffer.alloc(0);
  measure(`${name}: to protobuf (${protobuf.length} B)`, () => encodeProtobuf(object));
  measure(`${name}: from protobuf`, () => decodeProtobuf(protobuf, 0, protobuf.length));
}
const lease = Buffer.from(LEASE);
measure('lease: find spec.renewTime', () => findPath(lease, 0, lease.length, renewTime));
const out = Buffer.alloc(lease.length + SPLICE_BYTES_MAX);
measure('lease: splice', () => splice(lease, 0, lease.length, head, 123456789, out, 0));
