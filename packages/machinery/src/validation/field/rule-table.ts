/** What the validation of a kind consists of: the contract between kinds and the table of all. */
import type { JsonObject } from '../../json/json-value.ts';
import type { NameRule } from './validation-metadata.ts';
import type { Findings } from './validation-rules.ts';

/** What a kind demands beyond its metadata. */
export interface KindRules {
  /** Form of its names; a subdomain unless said otherwise. */
  readonly name?: NameRule;
  /** Finalizers may have any qualified name: kinds that upstream checks outside its core. */
  readonly isForeign?: boolean;
  /** Upstream does not look at the metadata of new objects, or their own rules do. */
  readonly skipsMetadata?: boolean;
  /** Holds for new objects, and for updated ones too unless `update` is given. */
  readonly create?: (found: Findings, object: JsonObject) => void;
  /** Replaces `create` for updates of the object itself. */
  readonly update?: (found: Findings, next: JsonObject, previous: JsonObject) => void;
  /** Comes on top of `create` for updates of the object itself: what must not change. */
  readonly change?: (found: Findings, next: JsonObject, previous: JsonObject) => void;
  /** Updates through a subresource, by its name; others check metadata only. */
  readonly subresources?: Readonly<
    Record<string, (found: Findings, next: JsonObject, previous: JsonObject) => void>
  >;
}

export type RuleTable = Readonly<Record<string, KindRules>>;
