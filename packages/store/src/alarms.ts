/** Which alarms are raised: a few rows, kept by the log, so that a restart does not disarm. */

export const ALARM_NO_SPACE = 1;
export const ALARM_CORRUPT = 2;
/** Clients may raise alarms for any member id: more rows than this are refused. */
export const ALARMS_MAX = 64;

export interface Alarm {
  readonly kind: number;
  /** The member's id in two unsigned halves. */
  readonly memberHigh: number;
  readonly memberLow: number;
}

export class Alarms {
  readonly #rows: Map<string, Alarm> = new Map();
  /** True while any member has the alarm: asked for by every write. */
  isNoSpace = false;
  isCorrupt = false;

  has({ kind, memberHigh, memberLow }: Alarm): boolean {
    return this.#rows.has(`${kind}/${memberHigh}/${memberLow}`);
  }

  /** Raises or takes back; false when it is so already or ALARMS_MAX are raised. */
  set(alarm: Alarm, isRaised: boolean): boolean {
    const row = `${alarm.kind}/${alarm.memberHigh}/${alarm.memberLow}`;
    if (this.#rows.has(row) === isRaised) return false;
    if (isRaised && this.#rows.size >= ALARMS_MAX) return false;
    if (isRaised) this.#rows.set(row, alarm);
    else this.#rows.delete(row);
    const kinds = new Set([...this.#rows.values()].map(({ kind }) => kind));
    this.isNoSpace = kinds.has(ALARM_NO_SPACE);
    this.isCorrupt = kinds.has(ALARM_CORRUPT);
    return true;
  }

  /** By kind, then member. */
  list(): readonly Alarm[] {
    return [...this.#rows.values()].sort(
      (a, b) => a.kind - b.kind || a.memberHigh - b.memberHigh || a.memberLow - b.memberLow,
    );
  }
}
