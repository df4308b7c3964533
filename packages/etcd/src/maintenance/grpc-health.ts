/**
 * `grpc.health.v1.Health`, which load balancers and gRPC probes of pods ask. Only the whole server
 * ("") has a state, as in etcd: SERVING until the log can not go on.
 */
import { FAILURE } from '@megaplane/store/contract';
import type { Store } from '@megaplane/store/store';
import type { GrpcCall, GrpcCallHandler, GrpcMethods } from '@megaplane/wire/grpc';
import { GRPC_CODES } from '@megaplane/wire/grpc';
import { FAILURE_NONE, ProtobufReader, WIRE_BYTES } from '@megaplane/wire/protobuf';
import { ETCD } from '../codec/failures.ts';

const SERVING = 1;
const NOT_SERVING = 2;
const SERVICE_UNKNOWN = 3;
/** HealthCheckResponse: field 1, one byte. */
const STATUS_TAG = 0x08;

/** The service asked for; null when the bytes are no message. */
function serviceOf(bytes: Buffer, start: number, end: number): string | null {
  const reader = new ProtobufReader().reset(bytes, start, end);
  let service = '';
  while (reader.next()) {
    if (reader.field === 1 && reader.wireType === WIRE_BYTES) service = reader.text();
    else reader.skip();
  }
  return reader.failure === FAILURE_NONE ? service : null;
}

export function registerHealth(methods: GrpcMethods, store: Store): void {
  const status = (): number => (store.admit(0) === FAILURE.logFailed ? NOT_SERVING : SERVING);
  methods.unary('/grpc.health.v1.Health/Check', (bytes, start, end, out, offset, call) => {
    const service = serviceOf(bytes, start, end);
    if (service === null) return call.fail(ETCD.malformed.code, ETCD.malformed.text);
    if (service !== '') return call.fail(GRPC_CODES.notFound, 'unknown service');
    out[offset] = STATUS_TAG;
    out[offset + 1] = status();
    return offset + 2;
  });
  const watches = new Set<GrpcCall>();
  store.onLogFailure(() => {
    for (const call of watches) call.send(Buffer.from([STATUS_TAG, NOT_SERVING]));
  });
  methods.call('/grpc.health.v1.Health/Watch', (call): GrpcCallHandler => ({
    onMessage: (bytes, start, end) => {
      const service = serviceOf(bytes, start, end);
      if (service === null) {
        call.finish(ETCD.malformedStream.code, ETCD.malformedStream.text);
        return;
      }
      call.send(Buffer.from([STATUS_TAG, service === '' ? status() : SERVICE_UNKNOWN]));
      if (service === '') watches.add(call);
    },
    onHalfClose: () => {},
    onCancel: () => watches.delete(call),
  }));
}
