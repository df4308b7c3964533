/** Where a request is passed on to. */
import type { Call } from '../request/call.ts';

/** What the other end is, which decides how TLS to it is made. */
export type Peer =
  /** A kubelet: with the server's client certificate, and its authority if there is one. */
  | 'kubelet'
  /** A pod or service: whatever certificate it shows. */
  | 'workload'
  /** An API server behind this one: with the front proxy's certificate, and its own authority. */
  | 'extension';

export interface Target {
  readonly peer: Peer;
  readonly isTls: boolean;
  readonly host: string;
  readonly port: number;
  /** Path and query. */
  readonly path: string;
  /** Only the upgrade of a connection makes sense (exec, attach, port-forward). */
  readonly needsUpgrade: boolean;
  /** Pod or node and its subresource, for error texts: `pods/log`, `p`. */
  readonly resource: string;
  readonly name: string;
  /** Proxies: the target is told where it seems to be, and its links are made to lead there. */
  readonly isWrapped?: boolean;
  /** Logs: a failure of the kubelet becomes a Status of ours. */
  readonly wrapsFailures: boolean;
  /** Logs: certificates are not looked at, as the request has asked. */
  readonly isInsecure: boolean;
  /** Extensions: the name in the certificate, its authority (PEM; '' the system's), who asks. */
  readonly serverName?: string;
  readonly ca?: string;
  /** Header fields, name and value by turns. */
  readonly fields?: readonly string[];
}

/** What a fetch brought. */
export type Fetched =
  | {
      readonly status: number;
      /** Null where it broke off, took too long or is too large. */
      readonly body: Buffer | null;
      /** Its `content-type` and `etag`; '' where there are none. */
      readonly type: string;
      readonly etag: string;
    }
  /** No answer in time, and why. */
  | { readonly why: string };

/** Passes requests on, by the sockets that only the shell has. */
export interface Relay {
  /** Answers the call with what the target answers. */
  pass(call: Call, target: Target): void;
  /**
   * Reads from an extension by itself, JSON unless the target's fields ask for something else;
   * calls `done` once, within the time.
   */
  fetch(target: Target, timeoutMs: number, done: (answer: Fetched) => void): void;
  /** How kubelets are found; see the flags. */
  readonly kubelets: KubeletFlags;
}

export interface KubeletFlags {
  /** `--kubelet-preferred-address-types`, best first. */
  readonly addressTypes: readonly string[];
  /** `--kubelet-port`, where a node tells none. */
  readonly port: number;
}

export const ADDRESS_TYPES: readonly string[] = [
  'Hostname',
  'InternalDNS',
  'InternalIP',
  'ExternalDNS',
  'ExternalIP',
];
export const KUBELET_PORT = 10_250;
