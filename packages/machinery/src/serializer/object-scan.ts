// data plane
import { integerAt, MemberCursor, skipSpace } from '../json/scan.ts';

/**
 * Where the fields that servers and controllers ask for stand in one object. `xStart`/`xEnd` of
 * strings are inside the quotes, of objects and lists with their brackets; -1 where the field is
 * absent (or `null`). Numbers are -1 when absent. Reuse one: `scan` fills it anew. /
 */
export class ObjectScan {
  kindStart = -1;
  kindEnd = -1;
  apiVersionStart = -1;
  apiVersionEnd = -1;
  metadataStart = -1;
  metadataEnd = -1;
  nameStart = -1;
  nameEnd = -1;
  namespaceStart = -1;
  namespaceEnd = -1;
  uidStart = -1;
  uidEnd = -1;
  /** As a number; -1 when absent or empty. Stored bytes hold none. */
  resourceVersion = -1;
  generation = -1;
  deletionTimestampStart = -1;
  deletionTimestampEnd = -1;
  deletionGracePeriodSeconds = -1;
  labelsStart = -1;
  labelsEnd = -1;
  annotationsStart = -1;
  annotationsEnd = -1;
  ownerReferencesStart = -1;
  ownerReferencesEnd = -1;
  finalizersStart = -1;
  finalizersEnd = -1;
  managedFieldsStart = -1;
  managedFieldsEnd = -1;
  specStart = -1;
  specEnd = -1;
  nodeNameStart = -1;
  nodeNameEnd = -1;
  schedulerNameStart = -1;
  schedulerNameEnd = -1;
  statusStart = -1;
  statusEnd = -1;
  phaseStart = -1;
  phaseEnd = -1;
  conditionsStart = -1;

  readonly #top = new MemberCursor();
  readonly #inner = new MemberCursor();

  /**
   * Finds the fields. False where the bytes hold no JSON object; fields found until then are kept.
   */
  scan(bytes: Uint8Array, start: number, end: number): boolean {
    this.#reset();
    const top = this.#top;
    if (!top.open(bytes, skipSpace(bytes, start, end), end)) return false;
    while (top.nextKey()) {
      const length = top.keyEnd - top.keyStart;
      const first = bytes[top.keyStart]!;
      if (first === LOWER_M && length === 8 && top.is(METADATA)) {
        if (!this.#metadata(bytes, end)) return false;
      } else if (first === LOWER_S && length === 4 && top.is(SPEC)) {
        if (!this.#spec(bytes, end)) return false;
      } else if (first === LOWER_S && length === 6 && top.is(STATUS)) {
        if (!this.#status(bytes, end)) return false;
      } else {
        if (!top.skip()) return false;
        if (length === 4 && top.is(KIND)) {
          this.kindStart = top.valueStart + 1;
          this.kindEnd = top.valueEnd - 1;
        } else if (length === 10 && top.is(API_VERSION)) {
          this.apiVersionStart = top.valueStart + 1;
          this.apiVersionEnd = top.valueEnd - 1;
        }
      }
    }
    return top.isClosed;
  }

  #metadata(bytes: Uint8Array, end: number): boolean {
    const inner = this.#inner;
    const top = this.#top;
    this.metadataStart = top.valueStart;
    if (!inner.open(bytes, top.valueStart, end)) return this.#skipOdd(false);
    while (inner.next()) {
      if (bytes[inner.valueStart] !== LOWER_N) this.#metadataMember(bytes);
    }
    if (!inner.isClosed) return false;
    this.metadataEnd = inner.closeEnd;
    top.resume(inner.closeEnd);
    return true;
  }

  /** A value of `null` (the only one that starts with n) has been left out before. */
  #metadataMember(bytes: Uint8Array): void {
    const inner = this.#inner;
    const start = inner.valueStart;
    const end = inner.valueEnd;
    const first = bytes[inner.keyStart]!;
    switch (inner.keyEnd - inner.keyStart) {
      case 3:
        if (!inner.is(UID)) return;
        this.uidStart = start + 1;
        this.uidEnd = end - 1;
        return;
      case 4:
        if (!inner.is(NAME)) return;
        this.nameStart = start + 1;
        this.nameEnd = end - 1;
        return;
      case 6:
        if (!inner.is(LABELS)) return;
        this.labelsStart = start;
        this.labelsEnd = end;
        return;
      case 9:
        if (!inner.is(NAMESPACE)) return;
        this.namespaceStart = start + 1;
        this.namespaceEnd = end - 1;
        return;
      case 10:
        if (first === LOWER_G && inner.is(GENERATION)) {
          this.generation = integerAt(bytes, start, end);
        } else if (inner.is(FINALIZERS)) {
          this.finalizersStart = start;
          this.finalizersEnd = end;
        }
        return;
      default:
        this.#longMember(bytes, start, end);
    }
  }

  #longMember(bytes: Uint8Array, start: number, end: number): void {
    const inner = this.#inner;
    switch (inner.keyEnd - inner.keyStart) {
      case 11:
        if (!inner.is(ANNOTATIONS)) return;
        this.annotationsStart = start;
        this.annotationsEnd = end;
        return;
      case 13:
        if (!inner.is(MANAGED_FIELDS)) return;
        this.managedFieldsStart = start;
        this.managedFieldsEnd = end;
        return;
      case 15:
        if (inner.is(RESOURCE_VERSION)) {
          this.resourceVersion = integerAt(bytes, start, end);
        } else if (inner.is(OWNER_REFERENCES)) {
          this.ownerReferencesStart = start;
          this.ownerReferencesEnd = end;
        }
        return;
      case 17:
        if (!inner.is(DELETION_TIMESTAMP)) return;
        this.deletionTimestampStart = start + 1;
        this.deletionTimestampEnd = end - 1;
        return;
      case 26:
        if (!inner.is(DELETION_GRACE)) return;
        this.deletionGracePeriodSeconds = integerAt(bytes, start, end);
        return;
      default:
    }
  }

  #spec(bytes: Uint8Array, end: number): boolean {
    const inner = this.#inner;
    const top = this.#top;
    this.specStart = top.valueStart;
    if (!inner.open(bytes, top.valueStart, end)) return this.#skipOdd(true);
    while (inner.next()) {
      const length = inner.keyEnd - inner.keyStart;
      if (length === 8 && inner.is(NODE_NAME)) {
        this.nodeNameStart = inner.valueStart + 1;
        this.nodeNameEnd = inner.valueEnd - 1;
      } else if (length === 13 && inner.is(SCHEDULER_NAME)) {
        this.schedulerNameStart = inner.valueStart + 1;
        this.schedulerNameEnd = inner.valueEnd - 1;
      }
    }
    if (!inner.isClosed) return false;
    this.specEnd = inner.closeEnd;
    top.resume(inner.closeEnd);
    return true;
  }

  #status(bytes: Uint8Array, end: number): boolean {
    const inner = this.#inner;
    const top = this.#top;
    this.statusStart = top.valueStart;
    if (!inner.open(bytes, top.valueStart, end)) {
      this.statusStart = -1;
      return top.skip();
    }
    while (inner.next()) {
      const length = inner.keyEnd - inner.keyStart;
      if (length === 10 && inner.is(CONDITIONS)) this.conditionsStart = inner.valueStart;
      if (length !== 5 || !inner.is(PHASE)) continue;
      this.phaseStart = inner.valueStart + 1;
      this.phaseEnd = inner.valueEnd - 1;
    }
    if (!inner.isClosed) return false;
    this.statusEnd = inner.closeEnd;
    top.resume(inner.closeEnd);
    return true;
  }

  /** `metadata` or `spec` that is no object (null, most likely) counts as absent. */
  #skipOdd(isSpec: boolean): boolean {
    if (isSpec) this.specStart = -1;
    else this.metadataStart = -1;
    return this.#top.skip();
  }

  #reset(): void {
    this.kindStart = this.kindEnd = this.apiVersionStart = this.apiVersionEnd = -1;
    this.metadataStart = this.metadataEnd = this.nameStart = this.nameEnd = -1;
    this.namespaceStart = this.namespaceEnd = this.uidStart = this.uidEnd = -1;
    this.resourceVersion = this.generation = this.deletionGracePeriodSeconds = -1;
    this.deletionTimestampStart = this.deletionTimestampEnd = -1;
    this.labelsStart = this.labelsEnd = this.annotationsStart = this.annotationsEnd = -1;
    this.ownerReferencesStart = this.ownerReferencesEnd = -1;
    this.finalizersStart = this.finalizersEnd = -1;
    this.managedFieldsStart = this.managedFieldsEnd = -1;
    this.specStart = this.specEnd = this.statusStart = this.statusEnd = -1;
    this.nodeNameStart = this.nodeNameEnd = -1;
    this.schedulerNameStart = this.schedulerNameEnd = -1;
    this.phaseStart = this.phaseEnd = this.conditionsStart = -1;
  }
}

const LOWER_G = 0x67;
const LOWER_M = 0x6d;
const LOWER_N = 0x6e;
const LOWER_S = 0x73;

const encoder = new TextEncoder();
const METADATA = encoder.encode('metadata');
const SPEC = encoder.encode('spec');
const STATUS = encoder.encode('status');
const KIND = encoder.encode('kind');
const API_VERSION = encoder.encode('apiVersion');
const UID = encoder.encode('uid');
const NAME = encoder.encode('name');
const LABELS = encoder.encode('labels');
const NAMESPACE = encoder.encode('namespace');
const GENERATION = encoder.encode('generation');
const FINALIZERS = encoder.encode('finalizers');
const ANNOTATIONS = encoder.encode('annotations');
const MANAGED_FIELDS = encoder.encode('managedFields');
const RESOURCE_VERSION = encoder.encode('resourceVersion');
const OWNER_REFERENCES = encoder.encode('ownerReferences');
const DELETION_TIMESTAMP = encoder.encode('deletionTimestamp');
const DELETION_GRACE = encoder.encode('deletionGracePeriodSeconds');
const NODE_NAME = encoder.encode('nodeName');
const SCHEDULER_NAME = encoder.encode('schedulerName');
const PHASE = encoder.encode('phase');
const CONDITIONS = encoder.encode('conditions');
