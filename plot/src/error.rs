//! Why a figure cannot be drawn.

/// What is wrong with a figure.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum PlotError {
    /// There is nothing to show.
    #[error("the panel \"{panel}\" shows nothing")]
    Empty {
        /// The panel's title.
        panel: String,
    },
    /// A value has no place on its axis.
    #[error(
        "\"{name}\" in the panel \"{panel}\" has the value {value}, which has no place on its axis"
    )]
    OffAxis {
        /// The panel's title.
        panel: String,
        /// Of the line or bars.
        name: String,
        /// The value.
        value: f64,
    },
    /// Bars have not one value for each group.
    #[error("\"{name}\" in the panel \"{panel}\" has {values} values for {groups} groups")]
    Groups {
        /// The panel's title.
        panel: String,
        /// Of the bars.
        name: String,
        /// Values given.
        values: usize,
        /// Groups given.
        groups: usize,
    },
    /// More lines than styles that can be told apart.
    #[error(
        "{lines} lines are more than the {} that can be told apart",
        crate::STYLES_MAX
    )]
    TooMany {
        /// Names in the legend.
        lines: usize,
    },
    /// The picture could not be encoded.
    #[error("the picture cannot be encoded: {0}")]
    Encoding(String),
}
