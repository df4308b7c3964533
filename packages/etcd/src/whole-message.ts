/** Requests whose fields nobody reads still have to be messages. */
import type { InPlaceHandler } from '@megaplane/wire/grpc';
import { FAILURE_NONE, ProtobufReader } from '@megaplane/wire/protobuf';
import type { EtcdContext } from './context.ts';
import { ETCD } from './failures.ts';

const reader = new ProtobufReader();

export function isMessage(bytes: Buffer, start: number, end: number): boolean {
  reader.reset(bytes, start, end);
  while (reader.next()) reader.skip();
  return reader.failure === FAILURE_NONE;
}

/** Refuses bytes that are no message, before the handler does anything. */
export function unlessMalformed(context: EtcdContext, handler: InPlaceHandler): InPlaceHandler {
  return (bytes, start, end, out, offset, call) =>
    isMessage(bytes, start, end)
      ? handler(bytes, start, end, out, offset, call)
      : context.fail(call, ETCD.malformed);
}
