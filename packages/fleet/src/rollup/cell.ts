/** A row of a roll-up under construction, and the message that is made of it. */
import { create } from '@bufbuild/protobuf';
import type { Quantity } from '@megaplane/machinery/quantity';
import { CapacityNeedSchema } from '../contract/tables/capacity.ts';
import type { CapacityNeed } from '../contract/tables/capacity.ts';
import type { Profile } from '../contract/profile.ts';
import type { Shape } from './request.ts';

/** What requests of one profile and group add up to. */
export interface Row {
  readonly profile: Profile;
  readonly fingerprint: string;
  readonly group: string;
  readonly aggregate: ReadonlyMap<string, Quantity>;
  /** Largest request of each resource. */
  readonly minUnit: ReadonlyMap<string, Quantity>;
}

/** Text that is equal for shapes that are added up in one row. */
export function rowKey({ fingerprint, group }: Pick<Shape, 'fingerprint' | 'group'>): string {
  return `${fingerprint}\0\0${group}`;
}

export function needOf(row: Row): CapacityNeed {
  const { requirements, spread, priority } = row.profile;
  return create(CapacityNeedSchema, {
    requirements: requirements.map(({ key, operator, values }) => {
      return { key, operator, values: [...values] };
    }),
    aggregateResources: textsOf(row.aggregate),
    priority,
    spread: spread.map((constraint) => ({ ...constraint })),
    interruptionPenaltyBucket: row.profile.interruptionBucket,
    reclamationPenaltyBucket: row.profile.reclamationBucket,
    minUnit: textsOf(row.minUnit),
    group: row.group,
  });
}

/** Quantities as the wire writes them. */
export function textsOf(resources: ReadonlyMap<string, Quantity>): { [name: string]: string } {
  const texts: [string, string][] = [];
  for (const [name, quantity] of resources) texts.push([name, quantity.toString()]);
  return Object.fromEntries(texts);
}
