/** Posts Events about objects, with client-go's rules against floods. */
import type { Client } from './client.ts';

/** The object that an event is about. */
export interface EventSubject {
  readonly kind: string;
  readonly apiVersion: string;
  /** Empty for cluster-scoped objects, whose events go to `default`. */
  readonly namespace: string;
  readonly name: string;
  readonly uid?: string;
  readonly resourceVersion?: string;
}

export interface EventRecorderOptions {
  readonly client: Client;
  /** `source.component`, such as `default-scheduler`. */
  readonly component: string;
  /** `source.host`; left out when empty. */
  readonly host?: string;
}

export interface EventRecorder {
  /**
   * Records one event. Equal ones become one Event with a count; more than ten of the same reason
   * about one object within ten minutes are combined; more than 25 per object, then one per five
   * minutes, are dropped. Never blocks and never fails: what cannot be posted is counted.
   */
  event(subject: EventSubject, type: 'Normal' | 'Warning', reason: string, message: string): void;
  readonly metrics: { posted: number; combined: number; dropped: number; failed: number };
}
