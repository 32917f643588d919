//! What must come of a case when nobody crashes, worked out from the semantics alone.
