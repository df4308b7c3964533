// shell: the connection of a shard to one provider
import { create } from '@bufbuild/protobuf';
import { connect } from '@megaplane/wire/connect';
import type { ConnectTls } from '@megaplane/wire/connect';
import type { ClientConnection } from '@megaplane/wire/client';
import { GRPC_CODES } from '@megaplane/wire/grpc';
import type { GrpcClient } from '@megaplane/wire/grpc';
import { grpcClient } from '@megaplane/wire/grpc-client';
import { CallError, callUnary, MESSAGE_BYTES_MAX } from '../contract/calls.ts';
import { CapacityProvider, ListFilterSchema } from '../contract/tables/provider.ts';
import type { MachineList, TransitionAck } from '../contract/tables/provider.ts';
import type { CallFailure, Change } from './effects.ts';

/** For a change. */
export const CALL_MS_MAX = 30_000;
export const LIST_MS_MAX = 120_000;

export interface ProviderAddress {
  readonly host: string;
  readonly port: number;
}

/** Dials when something is asked; each question is answered, by a failure if by nothing else. */
export class ProviderLink {
  readonly #address: ProviderAddress;
  readonly #tls: () => ConnectTls | undefined;
  #link: { readonly connection: ClientConnection; readonly client: GrpcClient } | null = null;

  constructor(address: ProviderAddress, tls: () => ConnectTls | undefined) {
    this.#address = address;
    this.#tls = tls;
  }

  change({ method, request }: Change): Promise<TransitionAck | CallFailure> {
    const { method: methods } = CapacityProvider;
    const client = this.#client();
    switch (method) {
      case 'create':
        return settled(callUnary(client, methods.create, request, CALL_MS_MAX));
      case 'configure':
        return settled(callUnary(client, methods.configure, request, CALL_MS_MAX));
      case 'drain':
        return settled(callUnary(client, methods.drain, request, CALL_MS_MAX));
      case 'delete':
        return settled(callUnary(client, methods.delete, request, CALL_MS_MAX));
    }
  }

  list(sinceRevision: Uint8Array): Promise<MachineList | CallFailure> {
    const filter = create(ListFilterSchema, { sinceRevision });
    return settled(callUnary(this.#client(), CapacityProvider.method.list, filter, LIST_MS_MAX));
  }

  close(): void {
    this.#link?.connection.destroy();
    this.#link = null;
  }

  #client(): GrpcClient {
    const state = this.#link?.connection.state;
    if (this.#link !== null && (state === 'connecting' || state === 'open')) {
      return this.#link.client;
    }
    const tls = this.#tls();
    const connection = connect({ ...this.#address, ...(tls === undefined ? {} : { tls }) });
    const client = grpcClient(connection, { messageBytesMax: MESSAGE_BYTES_MAX });
    this.#link = { connection, client };
    return client;
  }
}

function settled<T>(answer: Promise<T>): Promise<T | CallFailure> {
  return answer.catch((error: unknown) => {
    const code = error instanceof CallError ? error.code : GRPC_CODES.internal;
    return { code, message: (error as Error).message };
  });
}
