/** What is due in which second; each member is due once, in the second that it carries itself. */
export interface Due {
  /** Set by `DueTimes`; -1: nothing is due. */
  dueSecond: number;
}

export class DueTimes<T extends Due> {
  readonly #bySecond = new Map<number, Set<T>>();
  /** The first second that was not looked at yet; -1 before the first look. */
  #next = -1;

  /** Sets or moves the time of `member`. */
  set(member: T, timeMs: number): void {
    this.delete(member);
    const second = Math.max(Math.ceil(timeMs / 1000), this.#next);
    member.dueSecond = second;
    let members = this.#bySecond.get(second);
    if (members === undefined) this.#bySecond.set(second, (members = new Set()));
    members.add(member);
  }

  delete(member: T): void {
    if (member.dueSecond < 0) return;
    const members = this.#bySecond.get(member.dueSecond);
    members?.delete(member);
    if (members?.size === 0) this.#bySecond.delete(member.dueSecond);
    member.dueSecond = -1;
  }

  /** Takes out up to `limit` members whose time has come; none when all of them were taken. */
  take(nowMs: number, limit: number): T[] {
    const taken: T[] = [];
    const last = Math.floor(nowMs / 1000);
    if (this.#next < 0) this.#next = Math.min(last, ...this.#bySecond.keys());
    for (; this.#next <= last; this.#next++) {
      const members = this.#bySecond.get(this.#next);
      if (members === undefined) continue;
      for (const member of members) {
        if (taken.length === limit) return taken;
        taken.push(member);
        this.delete(member);
      }
    }
    return taken;
  }
}
