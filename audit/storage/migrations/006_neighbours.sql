-- What grows with releases, not with pairs of them: neighbours, behaviours, safe ranges.

-- Finished runs; the latest of each matrix, with recency 1, is what most views show.
CREATE VIEW internal.finished_runs AS
    SELECT *, row_number() OVER (PARTITION BY matrix ORDER BY finished DESC) AS recency
    FROM internal.runs WHERE finished IS NOT NULL;

-- `recency` follows from `run_id`. It stands among the keys so that a filter on it reaches the tables: otherwise all
-- runs that there ever were would be ranked to show one.
CREATE OR REPLACE VIEW internal.ranked_cells AS
    SELECT
        cells.*, listed.series, listed.requires, run.recency, run.matrix, run.reads,
        cells.behaviour IS NOT NULL AS dumped,
        row_number() OVER (PARTITION BY run_id, recency, environment, series ORDER BY cells.position) AS place,
        row_number() OVER (
            PARTITION BY run_id, recency, environment, series, cells.behaviour IS NOT NULL ORDER BY cells.position
        ) AS dumped_place
    FROM internal.run_cells AS cells
    JOIN internal.run_releases AS listed USING (run_id, release)
    JOIN internal.finished_runs AS run USING (run_id);

CREATE VIEW internal.older_cells AS
    SELECT
        run_id, recency, environment, series AS older_series, requires AS older_requires, place AS older_place,
        dumped_place AS older_dumped_place, dumped AS older_dumped, release AS older, position AS older_position,
        behaviour AS older_behaviour, status AS older_status, reason AS older_reason
    FROM internal.ranked_cells;

CREATE VIEW internal.newer_cells AS
    SELECT
        run_id, recency, environment, series AS newer_series, requires AS newer_requires, place AS newer_place,
        dumped_place AS newer_dumped_place, dumped AS newer_dumped, release AS newer, position AS newer_position,
        behaviour AS newer_behaviour, status AS newer_status, reason AS newer_reason
    FROM internal.ranked_cells;

-- Neighbours are found by equal places, which costs as much as there are releases. All other pairs stand in the last
-- part, which a filter on `adjacent` takes out of the plan.
CREATE VIEW internal.paired AS
    SELECT *, true AS adjacent
    FROM internal.older_cells JOIN internal.newer_cells USING (run_id, recency, environment)
    WHERE older_series = newer_series AND newer_place = older_place + 1
    UNION ALL
    SELECT *, true AS adjacent  -- over releases in between that lack the environment
    FROM internal.older_cells JOIN internal.newer_cells USING (run_id, recency, environment)
    WHERE older_series = newer_series AND older_dumped AND newer_dumped
        AND newer_dumped_place = older_dumped_place + 1 AND newer_place > older_place + 1
    UNION ALL
    SELECT *, true AS adjacent  -- the same requirements in another series
    FROM internal.older_cells JOIN internal.newer_cells USING (run_id, recency, environment)
    WHERE older_series <> newer_series AND older_requires = newer_requires AND older_position < newer_position
    UNION ALL
    SELECT *, false AS adjacent
    FROM internal.older_cells JOIN internal.newer_cells USING (run_id, recency, environment)
    WHERE older_position < newer_position
        AND CASE WHEN older_series <> newer_series THEN older_requires <> newer_requires
                 WHEN older_dumped AND newer_dumped THEN newer_dumped_place - older_dumped_place <> 1
                 ELSE newer_place - older_place <> 1 END;

CREATE VIEW internal.judged_pairs AS
    WITH paired AS (
        SELECT
            *,
            -- What needs no comparison: a dump is missing, or the two are the same.
            CASE WHEN older_dumped AND newer_dumped
                 THEN CASE WHEN older_behaviour = newer_behaviour THEN 'identical' END
                 WHEN 'nondeterministic' IN (older_status, newer_status) THEN 'nondeterministic'
                 WHEN 'incomparable' IN (older_status, newer_status) THEN 'incomparable'
                 ELSE 'unavailable' END AS plain_verdict,
            concat_ws('; ',
                CASE WHEN NOT older_dumped THEN older || ': ' || older_reason END,
                CASE WHEN NOT newer_dumped THEN newer || ': ' || newer_reason END
            ) AS plain_reason
        FROM internal.paired
    )
    SELECT
        run.matrix,
        paired.environment,
        paired.older,
        paired.newer,
        paired.adjacent,
        coalesce(paired.plain_verdict, comparison.verdict) AS verdict,
        CASE WHEN paired.plain_verdict = 'identical' THEN 0 ELSE comparison.first_step_separation END
            AS first_step_separation,
        CASE WHEN paired.plain_verdict = 'identical' THEN 0 ELSE comparison.first_step_ulps END AS first_step_ulps,
        CASE WHEN paired.plain_verdict = 'identical' THEN 0 ELSE comparison.horizon_separation END
            AS horizon_separation,
        coalesce(comparison.reason, paired.plain_reason) AS reason,
        paired.older_position,
        paired.newer_position,
        paired.older_behaviour,
        paired.newer_behaviour,
        run.run_id,
        run.finished,
        coalesce(paired.plain_verdict, comparison.paper_verdict) AS paper_verdict,
        CASE WHEN paired.plain_verdict = 'identical' THEN 0 ELSE comparison.first_step_ratio END AS first_step_ratio,
        greatest(older_null.null_ratio, newer_null.null_ratio) AS null_ratio,
        CASE WHEN paired.plain_verdict = 'identical' THEN environment.states ELSE comparison.states_forced END
            AS states_forced,
        CASE WHEN paired.plain_verdict = 'identical' THEN 0 ELSE comparison.states_beyond END AS states_beyond,
        coalesce(comparison.outputs_changed, '') AS outputs_changed,
        comparison.beyond,
        coalesce(environment.coverage, '') AS coverage,
        coalesce(environment.evidence, 'forced') AS evidence,
        certificate.certificate,
        certificate.steps_per_decade AS growth_steps_per_decade,
        paired.recency
    FROM paired
    JOIN internal.runs AS run USING (run_id)
    LEFT JOIN internal.run_environments AS environment
        ON environment.run_id = run.run_id AND environment.environment = paired.environment
    LEFT JOIN internal.behaviours AS older_null ON older_null.behaviour = paired.older_behaviour
    LEFT JOIN internal.behaviours AS newer_null ON newer_null.behaviour = paired.newer_behaviour
    LEFT JOIN internal.comparisons AS comparison
        ON comparison.first = least(paired.older_behaviour, paired.newer_behaviour)
        AND comparison.second = greatest(paired.older_behaviour, paired.newer_behaviour)
        AND comparison.reads = run.reads
        AND paired.plain_verdict IS NULL
    LEFT JOIN internal.certificates AS certificate
        ON certificate.first = comparison.first
        AND certificate.second = comparison.second
        AND certificate.reads = comparison.reads
    WHERE run.finished IS NOT NULL
        AND CASE run.pairing
            WHEN 'adjacent' THEN paired.adjacent
            WHEN 'against' THEN run.against IN (paired.older, paired.newer)
            ELSE true END;

CREATE OR REPLACE VIEW pairs_history AS SELECT * EXCLUDE (recency) FROM internal.judged_pairs;

CREATE OR REPLACE VIEW pairs AS SELECT * EXCLUDE (recency) FROM internal.judged_pairs WHERE recency = 1;

CREATE VIEW neighbours AS SELECT * FROM pairs WHERE adjacent;

-- Releases of a series, one after the other, that show one behaviour. One that lacks the environment is passed over.
CREATE VIEW internal.stretches AS
    WITH marked AS (
        SELECT *, behaviour IS DISTINCT FROM lag(behaviour) OVER series_of_cells AS begins
        FROM internal.ranked_cells
        WHERE dumped
        WINDOW series_of_cells AS (PARTITION BY run_id, recency, environment, series ORDER BY position)
    ),
    numbered AS (
        SELECT *, (sum(begins::INTEGER) OVER (
            PARTITION BY run_id, recency, environment, series ORDER BY position ROWS UNBOUNDED PRECEDING
        ))::BIGINT AS number
        FROM marked
    )
    SELECT
        run_id, recency, matrix, reads, environment, series, number, behaviour,
        min(position) AS first_position, max(position) AS last_position,
        min(place) AS first_place, max(place) AS last_place,
        min(dumped_place) AS first_dumped_place, max(dumped_place) AS last_dumped_place,
        arg_min(release, position) AS first, arg_max(release, position) AS last
    FROM numbered
    GROUP BY run_id, recency, matrix, reads, environment, series, number, behaviour;

CREATE VIEW stretches AS
    SELECT
        matrix, environment, series, number, behaviour, first, last,
        last_dumped_place - first_dumped_place + 1 AS releases, first_position, last_position
    FROM internal.stretches WHERE recency = 1;

CREATE VIEW behaviours AS
    WITH shown AS (
        SELECT
            matrix, environment, behaviour, count(*) AS releases, arg_min(release, position) AS first,
            arg_max(release, position) AS last, list(release ORDER BY position) AS members,
            min(position) AS first_position, max(position) AS last_position
        FROM internal.ranked_cells
        WHERE recency = 1 AND dumped
        GROUP BY matrix, environment, behaviour
    )
    SELECT shown.*, known.null_ratio FROM shown LEFT JOIN internal.behaviours AS known USING (behaviour);

-- Behaviours whose results may be used beside each other, by what of them: whole trajectories, or single steps.
CREATE VIEW internal.comparable_behaviours AS
    WITH judged AS (
        SELECT
            comparison.reads, comparison.first, comparison.second,
            comparison.verdict IN ('identical', 'rounding') AS together,
            comparison.verdict = 'amplified' AND certificate.certificate = 'holds' AS amplified
        FROM internal.comparisons AS comparison
        LEFT JOIN internal.certificates AS certificate USING (first, second, reads)
    ),
    either_way AS (
        SELECT reads, first AS behaviour, second AS other, together, amplified FROM judged
        UNION ALL
        SELECT reads, second, first, together, amplified FROM judged
    )
    SELECT reads, behaviour, other, 'trajectories' AS comparable FROM either_way WHERE together
    UNION ALL
    SELECT reads, behaviour, other, 'steps' AS comparable FROM either_way WHERE together OR amplified;

-- Rounding is not transitive: that each is near its neighbour does not make the ends near each other. So every pair
-- counts. Each stretch has a last one before it that it is not comparable with; the range that ends with a stretch
-- begins right after the latest of these so far. What nobody compared is not comparable.
CREATE VIEW safe_ranges AS
    WITH stretches AS (SELECT * FROM internal.stretches WHERE recency = 1),
    kinds AS (SELECT unnest(['trajectories', 'steps']) AS comparable),
    shown AS (SELECT DISTINCT run_id, reads, environment, series, behaviour FROM stretches),
    apart AS (
        SELECT one.run_id, one.environment, one.series, one.behaviour, other.behaviour AS other, kinds.comparable
        FROM shown AS one
        JOIN shown AS other USING (run_id, environment, series)
        CROSS JOIN kinds
        ANTI JOIN internal.comparable_behaviours AS known
            ON known.reads = one.reads AND known.behaviour = one.behaviour AND known.other = other.behaviour
            AND known.comparable = kinds.comparable
        WHERE one.behaviour <> other.behaviour
    ),
    conflicts AS (
        SELECT
            stretches.run_id, stretches.environment, stretches.series, stretches.number, apart.comparable, apart.other
        FROM stretches JOIN apart USING (run_id, environment, series, behaviour)
    ),
    cuts AS (
        SELECT conflicts.run_id, conflicts.environment, conflicts.series, conflicts.number, conflicts.comparable,
            max(before.number) AS cut
        FROM conflicts
        ASOF JOIN stretches AS before
            ON before.run_id = conflicts.run_id AND before.environment = conflicts.environment
            AND before.series = conflicts.series AND before.behaviour = conflicts.other
            AND before.number < conflicts.number
        GROUP BY ALL
    ),
    ending AS (
        SELECT
            stretches.*, kinds.comparable,
            1 + coalesce(max(cuts.cut) OVER (
                PARTITION BY run_id, environment, series, comparable ORDER BY number ROWS UNBOUNDED PRECEDING
            ), 0) AS begin_number
        FROM stretches
        CROSS JOIN kinds
        LEFT JOIN cuts USING (run_id, environment, series, number, comparable)
    ),
    longest AS (
        SELECT *
        FROM ending
        QUALIFY begin_number IS DISTINCT FROM lead(begin_number) OVER (
            PARTITION BY run_id, environment, series, comparable ORDER BY number
        )
    )
    SELECT
        longest.matrix, longest.environment, longest.series, longest.comparable, start.first, longest.last,
        longest.last_dumped_place - start.first_dumped_place + 1 AS releases,
        longest.number - start.number AS boundaries,
        (longest.last_place - start.first_place) - (longest.last_dumped_place - start.first_dumped_place) AS lacking,
        start.first_position, longest.last_position
    FROM longest
    JOIN stretches AS start
        ON start.run_id = longest.run_id AND start.environment = longest.environment
        AND start.series = longest.series AND start.number = longest.begin_number;

-- Arrays lie outside the database, equal ones once; `bytes` without the header of their files.
CREATE VIEW arrays AS
    SELECT
        behaviour, output, array_digest, dtype, shape,
        coalesce(list_product(shape::BIGINT[]), 1)::BIGINT
            * CASE WHEN dtype = 'bool' THEN 1 ELSE regexp_extract(dtype, '(\d+)$', 1)::BIGINT // 8 END AS bytes
    FROM internal.behaviour_outputs;
